# What osken-manager was while os-ken still came with web applications.
import sys
from os_ken.lib import hub
hub.patch(thread=False)
import eventlet.wsgi
eventlet.wsgi.ALREADY_HANDLED = None  # gone from eventlet; only WebSockets would need it
from os_ken import cfg, log
from os_ken.app import wsgi
from os_ken.base.app_manager import AppManager
from os_ken.controller import controller
cfg.CONF(args=["--ofp-tcp-listen-port", "6653", "--ofp-listen-host", "127.0.0.1", "--wsapi-host", "127.0.0.1"], project="os_ken")
log.init_log()
apps = AppManager.get_instance()
apps.load_apps([sys.argv[1], "os_ken.controller.ofp_handler"])
services = apps.instantiate_apps(**apps.create_contexts())
hub.joinall(services + [hub.spawn(wsgi.start_service(apps))])

// @ts-check
// Tables of a switch: flows, tables, ports and groups, with their counters.

/** @template {keyof HTMLElementTagNameMap} K @param {K} name @param {string} text */
export function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/**
 * @param {string} caption
 * @param {string[]} head
 * @param {(string | number)[][]} rows
 */
export function table(caption, head, rows) {
  const made = document.createElement("table");
  made.append(element("caption", caption));
  const columns = made.createTHead().insertRow();
  head.forEach((text) => columns.append(element("th", text)));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value) => { line.insertCell().textContent = String(value); });
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.append(made);
  return scroll;
}

/** Returns the tables of a switch, as the engine reports it. @param {any} report */
export function switchTables({ flows, tables, ports, groups, omitted }) {
  const more = omitted > 0 ? ` of ${flows.length + omitted}` : "";
  return [
    table(`Flows: ${flows.length}${more}`, ["table", "priority", "match", "actions", "packets", "bytes"],
      flows.map((/** @type {any} */ flow) => [
        flow.table, flow.priority, flow.match || "all", flow.actions.replace(/^actions=/, ""), flow.packets,
        flow.bytes])),
    table("Tables", ["table", "flows", "lookups", "matched"],
      tables.map((/** @type {any} */ one) => [one.table, one.flows, one.lookups, one.matched])),
    table("Ports", ["port", "name", "link", "received", "bytes", "sent", "bytes", "dropped"],
      ports.map((/** @type {any} */ port) => [
        port.port, port.name, port.up ? "up" : "down", port.rx_packets, port.rx_bytes, port.tx_packets,
        port.tx_bytes, port.dropped])),
    ...(groups.length > 0 ? [table("Groups", ["group", "packets", "bytes"],
      groups.map((/** @type {any} */ group) => [group.group, group.packets, group.bytes]))] : []),
  ];
}

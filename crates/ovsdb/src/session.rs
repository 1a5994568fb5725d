//! The protocol over one connection, without a socket: bytes and the time in, bytes and events out.
//!
//! ```text
//!  get_schema ─▶ monitor, lock ─▶ replica ─▶ update, update, …      transact ─▶ reply
//! ```
//!
//! The lock is that of ovs-vswitchd. Whoever holds it drives the switches of the database, so that
//! two programs do not write the same columns in turn.

use crate::framing::{Framer, FramingError};
use crate::message::{RpcMessage, error_text};
use crate::replica::{Replica, ReplicaError};
use crate::row_update::RowUpdate;
use crate::schema::{self, DATABASE};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The lock that ovs-vswitchd takes.
const LOCK: &str = "ovs_vswitchd";
/// Silence after which the server is asked whether it is there, and after which it is not.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// What the owner of a session has to look at.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// Rows have changed, or are here for the first time.
    Changed,
    /// The lock was given or taken: see [`Session::has_lock`].
    Lock,
    /// The reply to [`Session::transact`].
    Transacted(Result<(), TransactError>),
}

/// Why the server did not commit a transaction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the database refuses a transaction: {0}")]
pub struct TransactError(String);

/// Why a session ends.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The stream does not consist of messages.
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// A message that is not one of JSON-RPC.
    #[error("a message that cannot be read: {0}")]
    Message(String),
    /// The server refuses a request without which nothing works.
    #[error("{request}: {why}")]
    Refused {
        /// The method.
        request: &'static str,
        /// What the server said.
        why: String,
    },
    /// An update cannot be applied.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The server did not answer.
    #[error("the server is silent")]
    Silent,
}

/// Requests whose replies are awaited. Each kind has one id.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Schema = 1,
    Monitor = 2,
    Lock = 3,
    Probe = 4,
}

/// Ids of transactions begin here.
const TRANSACTIONS_FROM: u64 = 100;

/// See the head of this file.
#[derive(Debug)]
pub struct Session {
    framer: Framer,
    output: Vec<u8>,
    /// Without rows until the server has sent them.
    replica: Option<Replica>,
    columns: schema::Columns,
    has_lock: bool,
    /// The id of the transaction under way.
    transaction: Option<u64>,
    next_transaction: u64,
    heard: Instant,
    probed: bool,
}

impl Session {
    /// Begins a session over a connection that was made at `now`.
    pub fn new(now: Instant) -> Session {
        let mut session = Session {
            framer: Framer::default(),
            output: Vec::new(),
            replica: None,
            columns: schema::Columns::default(),
            has_lock: false,
            transaction: None,
            next_transaction: TRANSACTIONS_FROM,
            heard: now,
            probed: false,
        };
        session.request("get_schema", json!([DATABASE]), Asked::Schema as u64);
        session
    }

    /// The rows, once the server has sent them.
    pub fn replica(&self) -> Option<&Replica> {
        self.replica.as_ref()
    }

    /// Whether this program drives the switches of the database.
    pub fn has_lock(&self) -> bool {
        self.has_lock
    }

    /// Whether the reply to a transaction is awaited.
    pub fn is_transacting(&self) -> bool {
        self.transaction.is_some()
    }

    /// Writes columns, all or none of them. Only one transaction is under way at a time, and only
    /// with the lock: otherwise nothing is sent, and false returned.
    pub fn transact(&mut self, updates: &[RowUpdate]) -> bool {
        if self.transaction.is_some() || !self.has_lock {
            return false;
        }
        let mut params = vec![json!(DATABASE), json!({"op": "assert", "lock": LOCK})];
        params.extend(updates.iter().map(RowUpdate::to_json));
        let id = self.next_transaction;
        self.next_transaction += 1;
        self.transaction = Some(id);
        self.request("transact", Value::Array(params), id);
        true
    }

    /// Takes the bytes to send.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Handles bytes that have arrived.
    ///
    /// # Errors
    /// Why the connection has to end.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<Vec<Event>, SessionError> {
        (self.heard, self.probed) = (now, false);
        self.framer.push(bytes);
        let mut events = Vec::new();
        while let Some(message) = self.framer.next()? {
            match RpcMessage::parse(message).map_err(SessionError::Message)? {
                RpcMessage::Request { method, params, id } => self.serve(&method, params, id, &mut events)?,
                RpcMessage::Reply { result, id } => self.handle_reply(result, &id, &mut events)?,
            }
        }
        // Each message is a transaction, and only the state after all of them matters.
        events.dedup();
        Ok(events)
    }

    /// Asks a silent server whether it is there.
    ///
    /// # Errors
    /// It did not answer.
    pub fn check(&mut self, now: Instant) -> Result<(), SessionError> {
        if now.saturating_duration_since(self.heard) < PROBE_AFTER {
            return Ok(());
        }
        if self.probed {
            return Err(SessionError::Silent);
        }
        (self.heard, self.probed) = (now, true);
        self.request("echo", json!([]), Asked::Probe as u64);
        Ok(())
    }

    fn request(&mut self, method: &str, params: Value, id: u64) {
        self.send(&json!({"method": method, "params": params, "id": id}));
    }

    fn send(&mut self, message: &Value) {
        self.output.extend_from_slice(message.to_string().as_bytes());
    }

    /// Handles a request or a notification of the server.
    fn serve(
        &mut self,
        method: &str,
        mut params: Vec<Value>,
        id: Value,
        events: &mut Vec<Event>,
    ) -> Result<(), SessionError> {
        match method {
            "echo" => self.send(&json!({"result": params, "error": null, "id": id})),
            "update" if params.len() == 2 => self.update(&params.swap_remove(1), events)?,
            "locked" | "stolen" if params.first().and_then(Value::as_str) == Some(LOCK) => {
                self.has_lock = method == "locked";
                events.push(Event::Lock);
            }
            // A notification that was not asked for.
            _ if id.is_null() => {}
            _ => self.send(&json!({"result": null, "error": "unknown method", "id": id})),
        }
        Ok(())
    }

    fn update(&mut self, updates: &Value, events: &mut Vec<Event>) -> Result<(), SessionError> {
        if let Some(replica) = &mut self.replica
            && replica.apply(updates)?
        {
            events.push(Event::Changed);
        }
        Ok(())
    }

    fn handle_reply(
        &mut self,
        result: Result<Value, Value>,
        id: &Value,
        events: &mut Vec<Event>,
    ) -> Result<(), SessionError> {
        let is = |request: Asked| id.as_u64() == Some(request as u64);
        let refused = |request, error: Value| SessionError::Refused { request, why: error_text(&error) };
        if is(Asked::Schema) {
            self.columns = schema::columns(&result.map_err(|error| refused("get_schema", error))?);
            let params = json!([DATABASE, null, schema::monitor_requests(&self.columns)]);
            self.request("monitor", params, Asked::Monitor as u64);
            self.request("lock", json!([LOCK]), Asked::Lock as u64);
        } else if is(Asked::Monitor) {
            let rows = result.map_err(|error| refused("monitor", error))?;
            let mut replica = Replica::new(std::mem::take(&mut self.columns));
            replica.apply(&rows)?;
            self.replica = Some(replica);
            events.push(Event::Changed);
        } else if is(Asked::Lock) {
            let answer = result.map_err(|error| refused("lock", error))?;
            self.has_lock |= answer["locked"] == json!(true);
            events.push(Event::Lock);
        } else if id.as_u64().is_some() && id.as_u64() == self.transaction {
            self.transaction = None;
            events.push(Event::Transacted(committed(result)));
        }
        Ok(())
    }
}

/// Whether a transaction was committed: a failed operation ends its results with an error, and one
/// that fails at the commit adds a result (RFC 7047 §4.1.3).
fn committed(result: Result<Value, Value>) -> Result<(), TransactError> {
    let results = result.map_err(|error| TransactError(error_text(&error)))?;
    let failed = results.as_array().and_then(|all| all.iter().find(|one| !one["error"].is_null()));
    failed.map_or(Ok(()), |one| Err(TransactError(error_text(one))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Datum, Uuid};

    const A: &str = "00000000-0000-0000-0000-00000000000a";

    struct Exchanged(Session, Instant);

    impl Exchanged {
        fn new() -> Exchanged {
            let now = Instant::now();
            Exchanged(Session::new(now), now)
        }

        /// The messages that the session has sent.
        fn sent(&mut self) -> Vec<Value> {
            let bytes = self.0.take_output();
            serde_json::Deserializer::from_slice(&bytes).into_iter().map(Result::unwrap).collect()
        }

        fn get(&mut self, message: Value) -> Result<Vec<Event>, SessionError> {
            self.0.receive(self.1, message.to_string().as_bytes())
        }

        fn reply(&mut self, result: Value, id: u64) -> Result<Vec<Event>, SessionError> {
            self.get(json!({"result": result, "error": null, "id": id}))
        }

        /// A session with the rows of one Open_vSwitch row, and the lock.
        fn ready() -> Exchanged {
            let mut bench = Exchanged::new();
            let columns = json!({"next_cfg": {}, "cur_cfg": {}});
            bench.reply(json!({"tables": {"Open_vSwitch": {"columns": columns}}}), 1).unwrap();
            bench.reply(json!({"Open_vSwitch": {A: {"new": {"next_cfg": 1, "cur_cfg": 0}}}}), 2).unwrap();
            bench.reply(json!({"locked": true}), 3).unwrap();
            bench.sent();
            bench
        }
    }

    fn next_cfg(session: &Session) -> Option<i64> {
        session.replica()?.rows("Open_vSwitch").next()?.1.column("next_cfg").integer()
    }

    #[test]
    fn a_session_asks_for_the_schema_then_for_what_the_schema_has() {
        let mut bench = Exchanged::new();
        let sent = bench.sent();
        assert_eq!(sent, [json!({"method": "get_schema", "params": ["Open_vSwitch"], "id": 1})]);
        let columns = json!({"next_cfg": {}, "other": {}});
        assert_eq!(bench.reply(json!({"tables": {"Open_vSwitch": {"columns": columns}}}), 1), Ok(vec![]));
        let sent = bench.sent();
        let requests = json!({"Open_vSwitch": {"columns": ["next_cfg"]}});
        assert_eq!(sent[0]["params"], json!(["Open_vSwitch", null, requests]));
        assert_eq!(sent[1]["params"], json!(["ovs_vswitchd"]));
        let rows = json!({"Open_vSwitch": {A: {"new": {"next_cfg": 3}}}});
        assert_eq!(bench.reply(rows, 2), Ok(vec![Event::Changed]));
        assert_eq!(next_cfg(&bench.0), Some(3));
        assert!(!bench.0.has_lock());
        assert_eq!(bench.reply(json!({"locked": false}), 3), Ok(vec![Event::Lock]));
        assert!(!bench.0.transact(&[]));
        let locked = json!({"method": "locked", "params": ["ovs_vswitchd"], "id": null});
        assert_eq!(bench.get(locked), Ok(vec![Event::Lock]));
        assert!(bench.0.has_lock());
        bench.get(json!({"method": "stolen", "params": ["ovs_vswitchd"], "id": null})).unwrap();
        assert!(!bench.0.has_lock());
    }

    #[test]
    fn updates_change_the_replica_and_requests_of_the_server_are_answered() {
        let mut bench = Exchanged::ready();
        let update = |row: Value| {
            let rows = json!({"Open_vSwitch": {A: {"new": row}}});
            json!({"method": "update", "params": [null, rows], "id": null})
        };
        assert_eq!(bench.get(update(json!({"next_cfg": 2}))), Ok(vec![Event::Changed]));
        assert_eq!(next_cfg(&bench.0), Some(2));
        let two =
            [update(json!({"next_cfg": 3})), update(json!({"next_cfg": 4}))].map(|json| json.to_string());
        assert_eq!(bench.0.receive(bench.1, two.concat().as_bytes()), Ok(vec![Event::Changed]));
        assert_eq!(next_cfg(&bench.0), Some(4));
        bench.get(json!({"method": "echo", "params": ["x"], "id": "e"})).unwrap();
        bench.get(json!({"method": "other", "params": [], "id": 7})).unwrap();
        bench.get(json!({"method": "other", "params": [], "id": null})).unwrap();
        let sent = bench.sent();
        assert_eq!(sent[0], json!({"result": ["x"], "error": null, "id": "e"}));
        assert_eq!(sent[1]["error"], "unknown method");
        assert_eq!(sent.len(), 2);
    }

    #[test]
    fn one_transaction_is_under_way_and_its_failure_is_an_event() {
        let mut bench = Exchanged::ready();
        let update = RowUpdate::new("Open_vSwitch", Uuid::from_u128(10), [("cur_cfg", Datum::one(1))]);
        assert!(bench.0.transact(std::slice::from_ref(&update)));
        assert!(!bench.0.transact(&[update]) && bench.0.is_transacting());
        let sent = bench.sent();
        assert_eq!((sent.len(), &sent[0]["params"][2]["row"]), (1, &json!({"cur_cfg": 1})));
        assert_eq!(bench.reply(json!([{}, {"count": 1}]), 100), Ok(vec![Event::Transacted(Ok(()))]));
        assert!(bench.0.transact(&[]));
        let failed = bench.reply(json!([{}, {"error": "not owner", "details": "lost"}]), 101).unwrap();
        let Event::Transacted(Err(error)) = &failed[0] else { unreachable!("{failed:?}") };
        assert!(error.to_string().ends_with("not owner: lost"));
        assert!(bench.0.transact(&[]));
        assert_eq!(bench.reply(json!([]), 101), Ok(vec![]), "an old reply");
    }

    #[test]
    fn a_server_that_refuses_or_sends_nonsense_ends_the_session() {
        let refuse = |id: u64| json!({"result": null, "error": {"error": "unknown database"}, "id": id});
        assert_eq!(Exchanged::new().get(refuse(1)).unwrap_err().to_string(), "get_schema: unknown database");
        assert_eq!(Exchanged::ready().get(refuse(2)).unwrap_err().to_string(), "monitor: unknown database");
        assert!(Exchanged::ready().get(refuse(3)).is_err());
        let update = json!({"method": "update", "params": [null, {"Port": 5}], "id": null});
        assert!(matches!(Exchanged::ready().get(update), Err(SessionError::Replica(_))));
        assert!(matches!(
            Exchanged::ready().get(json!({"id": 5, "method": 5})),
            Err(SessionError::Message(_))
        ));
        let http = Exchanged::new().0.receive(Instant::now(), b"HTTP/1.1 400\r\n");
        assert!(matches!(http, Err(SessionError::Framing(_))));
    }

    #[test]
    fn a_silent_server_is_asked_once_and_then_given_up() {
        let mut bench = Exchanged::ready();
        let at = |seconds| bench.1 + Duration::from_secs(seconds);
        let (first, second, third) = (at(5), at(6), at(11));
        assert_eq!(bench.0.check(at(4)), Ok(()));
        assert!(bench.sent().is_empty());
        assert_eq!(bench.0.check(first), Ok(()));
        assert_eq!(bench.sent()[0]["method"], "echo");
        bench.1 = second;
        bench.reply(json!([]), 4).unwrap();
        assert_eq!(bench.0.check(third), Ok(()));
        assert_eq!(bench.sent().len(), 1);
        assert_eq!(bench.0.check(third + PROBE_AFTER), Err(SessionError::Silent));
    }
}

// A client of berthd in node.js: leases a card, works, gives way when it is asked to.
//
// node client.mjs NAME NEEDS_MIB PIECES: it does so many pieces of work, of a fifth of a second each.

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Dealer } from "zeromq";

const { BERTH_SOCKET, XDG_RUNTIME_DIR } = process.env;
const own = `/run/user/${process.getuid()}`;
const folder = XDG_RUNTIME_DIR || (existsSync(own) ? own : `/tmp/berth-${process.getuid()}`);
const socket = new Dealer({ linger: 500, receiveTimeout: 15_000 }); // berthd speaks every 5 seconds
socket.connect(`ipc://${BERTH_SOCKET || folder + "/berth.sock"}`);

let number = 0;
const asked = new Map(); // id -> what to do with its last answer
let wanted = null;

function send(op, fields) {
  const id = String(++number);
  const answer = new Promise((resolve) => asked.set(id, resolve));
  socket.send(JSON.stringify({ v: 1, id, op, ...fields }));
  return answer;
}

function onOrder({ order, lease, attempt, why }) {
  if (order === "ping") return send("pong", { lease });
  wanted = order === "continue" ? null : { attempt, why };
  return send("lease.answer", { lease, attempt, state: "heard" });
}

function fail(text) {
  console.error(text);
  process.exit(1);
}

async function listen() {
  for await (const [frame] of socket) {
    const heard = JSON.parse(frame);
    if (heard.order) onOrder(heard);
    else if (!heard.ok) fail(`${heard.error.code}: ${heard.error.message}`);
    else if (heard.last) asked.get(heard.id)(heard.data);
    else console.log("waiting:", heard.data.why ?? "asked");
  }
}

listen().catch(() => fail("berthd is silent"));
const [name, needsMib, pieces] = process.argv.slice(2);
const terms = { name, needs_mib: Number(needsMib), boundary: true, key: randomUUID() };
const { lease } = await send("lease.request", { wait_s: 60, ...terms });
await send("lease.started", { lease, pids: [process.pid] });
console.log("granted:", lease); // from here on the memory may be used

for (let piece = 0; piece < Number(pieces) && !wanted; piece++) {
  await pause(200); // a piece of work; between two of them nothing is in flight
}

// Here the memory is given back; only then is the lease.
if (wanted) {
  console.log("wanted:", wanted.why);
  await send("lease.answer", { lease, attempt: wanted.attempt, state: "released" });
} else {
  await send("lease.release", { lease });
}
console.log("released:", lease);
process.exit(0);

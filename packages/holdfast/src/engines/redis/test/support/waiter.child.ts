// Acquires one resource and holds it: waiter <url> <resource> <options as JSON>. Prints "ready",
// then "held <token>"; answers the commands "state" and "release", and ends at "exit".
import { createInterface } from "node:readline";
import { connect } from "../../../../connect.js";

const [url = "", resource = "", options = "{}"] = process.argv.slice(2);
const locks = await connect(url);
console.log("ready");
const lease = await locks.acquire(resource, JSON.parse(options));
console.log(`held ${lease.token}`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "state") console.log(`state ${lease.held}`);
  else if (line === "release") console.log(`release ${await lease.release()}`);
  else if (line === "exit") break;
}
await locks.close();

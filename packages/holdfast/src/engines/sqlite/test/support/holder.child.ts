// Holds one resource until it is told to exit: holder <url> <resource> <acquire options as JSON>.
// Prints "held <token>", then answers each line of its input: "state", "release", "exit".
import { createInterface } from "node:readline";
import { connect } from "../../../../connect.js";

const [url = "", resource = "", options = "{}"] = process.argv.slice(2);
const locks = await connect(url);
const lease = await locks.acquire(resource, JSON.parse(options));
console.log(`held ${lease.token}`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "state") console.log(`state ${lease.held}`);
  else if (line === "release") console.log(`release ${await lease.release()}`);
  else if (line === "exit") break;
}
await locks.close();

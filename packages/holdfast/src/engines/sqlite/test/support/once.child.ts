// Calls once, and runs until it is killed or its input ends: once <url> <resource> <atLeastMs>.
// Prints "ran" or "kept out".
import { connect } from "../../../../connect.js";

const [url = "", resource = "", atLeastMs = "0"] = process.argv.slice(2);
const locks = await connect(url);
const terms = { atMostMs: 600_000, atLeastMs: Number(atLeastMs) };
const { ran } = await locks.once(resource, terms, () => "done");
console.log(ran ? "ran" : "kept out");
process.stdin.resume();

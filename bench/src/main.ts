import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { HELP, parseBenchArgs } from "./args.js";
import { abandonAll } from "./measuring/measurement.js";
import { runSuite, UsageMistake } from "./measuring/run-suite.js";
import { printReport } from "./reporting/print.js";
import { rounded, writeResults } from "./reporting/results.js";
import { Progress, paintFor } from "./reporting/terminal.js";
import { loadSuite, suiteNames } from "./suites.js";

const RESULTS = fileURLToPath(new URL("../results", import.meta.url));
const EXIT_USAGE = 64;
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

for (const [signal, code] of Object.entries(SIGNALS)) {
  process.once(signal, () => {
    abandonAll();
    process.exit(code);
  });
}

try {
  process.exitCode = await bench(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof UsageMistake ? error.message : error);
  process.exitCode = error instanceof UsageMistake ? EXIT_USAGE : 1;
}

async function bench(argv: readonly string[]): Promise<number> {
  const args = parseBenchArgs(argv);
  if (args.help || args.suite === null) {
    console.log(`${HELP}\n\nsuites: ${suiteNames.join(", ")}`);
    return args.help ? 0 : EXIT_USAGE;
  }
  const suite = await loadSuite(args.suite);
  const progress = new Progress(process.stderr);
  const { scenarios, contenders, quick, size } = args;
  const onProgress = progress.say.bind(progress);
  const report = await runSuite(suite, { ...args, onProgress }).finally(() => progress.end());
  console.log(
    args.json ? JSON.stringify(report, rounded, 2) : printReport(report, paintFor(process.stdout)),
  );
  // A partial run must not replace the results of the whole suite.
  const everything = scenarios === null && contenders === null;
  const whole = everything && !quick && size === Infinity;
  const folder = args.out ?? (whole ? RESULTS : null);
  const written = folder === null ? [] : writeResults(report, folder);
  const names = written.map((path) => relative(process.cwd(), path));
  if (names.length > 0) console.error(`\nwritten: ${names.join(", ")}`);
  // A requirement that a whole run did not measure is not met.
  const missed = report.requirements.some(
    ({ met }) => met === false || (everything && met === null),
  );
  return args.check && missed ? 1 : 0;
}

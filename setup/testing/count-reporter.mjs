// A reporter of node --test: one line of JSON for each test, for whoever counts them.
export default async function* countReporter(source) {
  // Those of a test that are inside it come before it: by file, how many there were at each depth.
  const inside = new Map();
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { file = "", name, nesting, skip, todo, details } = data;
    const depths = inside.get(file) ?? [];
    inside.set(file, depths);
    const hasParts = (depths[nesting + 1] ?? 0) > 0;
    depths[nesting + 1] = 0;
    depths[nesting] = (depths[nesting] ?? 0) + 1;
    const passed = type === "test:pass";
    // One whose parts were counted counts by itself only where nothing else says that it failed.
    const isTold = hasParts && (passed || details?.error?.failureType === "subtestsFailed");
    if (isTold || details?.type === "suite" || skip !== undefined || todo !== undefined) continue;
    yield `${JSON.stringify({ file, name, passed })}\n`;
  }
}

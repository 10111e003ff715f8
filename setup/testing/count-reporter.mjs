// A reporter of node --test: one line of JSON for each test, for programs that count them.
export default async function* countReporter(source) {
  // Subtests are reported before their parent. By file: how many tests were seen at each depth.
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
    // A parent of counted subtests counts only if it failed for a reason of its own.
    const isTold = hasParts && (passed || details?.error?.failureType === "subtestsFailed");
    if (isTold || details?.type === "suite" || skip !== undefined || todo !== undefined) continue;
    yield `${JSON.stringify({ file, name, passed })}\n`;
  }
}

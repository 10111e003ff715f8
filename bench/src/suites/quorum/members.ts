/** Of the second quorum, which has a node that is stopped. */
export const DOWN_PREFIX = "one-down:";

/** The members of one of the two quorums, by the ground's address, which lists all servers. */
export function membersOf(
  url: string,
  which: "five" | "one-down",
): { readonly name: string; readonly index: number; readonly port: number }[] {
  const hosts = url.slice("redlock://".length).split(",");
  const chosen = which === "five" ? [0, 1, 2, 3, 4] : [0, 1, 2, 3, 5];
  return chosen.map((index) => ({
    name: `node-${index}`,
    index,
    port: Number(hosts[index]!.split(":")[1]),
  }));
}

import { createHash } from "node:crypto";

/** What ZooKeeper refuses in a name, what it reads as syntax, and our own escape. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const UNFIT = /[%/\u0000-\u001f\u007f-\u009f\ue000-\uf8ff\ufff0-\uffff]|[\u{10000}-\u{10ffff}]/gu;
const HASH_LENGTH = 32;

/** Where the locks are: a folder, and what the names in it begin with. */
export interface Location {
  readonly folder: string;
  readonly stem: string;
}

/** prefix "a/b-" below chroot "/c" is the folder /c/a, with names that begin with "b-". */
export function locationOf(chroot: string, prefix: string): Location {
  const at = prefix.lastIndexOf("/");
  const folder = at < 0 ? chroot : `${chroot}/${prefix.slice(0, at)}`;
  return { folder, stem: prefix.slice(at + 1) };
}

/** The node of a resource. Its holders and waiters are its children. */
export function pathOf({ folder, stem }: Location, resource: string): string {
  let name = stem + resource.replace(UNFIT, encodeURIComponent);
  if (name === "." || name === "..") name = name.replaceAll(".", "%2E");
  // The root has one child that belongs to the servers.
  if (folder === "" && name === "zookeeper") name = "%7Aookeeper";
  return `${folder}/${name}`;
}

/** The resource of a child of the folder; null for a name of another program. */
export function resourceOf({ folder, stem }: Location, child: string): string | null {
  if (!child.startsWith(stem)) return null;
  try {
    const resource = decodeURIComponent(child.slice(stem.length));
    return resource !== "" && pathOf({ folder, stem }, resource) === `${folder}/${child}`
      ? resource
      : null;
  } catch {
    // A "%" that begins no escape: a name of another program.
    return null;
  }
}

/** Other programs can list names, so names contain only the hash of a grantId, which is secret. */
export function hashOf(grantId: string): string {
  return createHash("sha256").update(grantId).digest("hex").slice(0, HASH_LENGTH);
}

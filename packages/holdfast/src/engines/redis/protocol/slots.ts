export const SLOTS = 16_384;

/**
 * The slot of a key on a Cluster: CRC16 (XMODEM) of its hash tag, or of the whole key if it has
 * none.
 */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) ^ TABLE[(crc >> 8) ^ byte]!) & 0xffff;
  return crc % SLOTS;
}

/** A hash tag for each slot. With it a channel's name falls into the slot of a key. */
export function tagOf(slot: number): string {
  tags ??= makeTags();
  return tags[slot]!;
}

let tags: string[] | undefined;

function makeTags(): string[] {
  const found: string[] = [];
  for (let n = 0, missing = SLOTS; missing > 0; n++) {
    const tag = n.toString(36);
    const slot = slotOf(tag);
    if (found[slot] !== undefined) continue;
    found[slot] = tag;
    missing--;
  }
  return found;
}

const TABLE = Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

/** All answer codes of the servers. failure.ts says what each of them means. */
export const CODES = {
  ok: 0,
  systemError: -1,
  inconsistent: -2,
  dataInconsistent: -3,
  connectionLoss: -4,
  marshalling: -5,
  unimplemented: -6,
  timeout: -7,
  badArguments: -8,
  unknownSession: -12,
  apiError: -100,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildren: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
  readOnly: -119,
  localSession: -120,
  noWatcher: -121,
  requestTimeout: -122,
  saslRequired: -124,
  quotaExceeded: -125,
  throttled: -127,
} as const;

const KNOWN = new Set<number>(Object.values(CODES));

/** Whether servers use this code. An answer with another code is malformed. */
export function isKnownCode(code: number): boolean {
  return KNOWN.has(code);
}

/** Whether this code means that the session is over, or is used by another connection. */
export function isSessionError(code: number | undefined): boolean {
  return code === CODES.sessionExpired || code === CODES.sessionMoved;
}

/**
 * Loads a client package when it is needed; null if it is not installed. The name is a value and
 * not a literal, so that a bundler does not look for packages that an application does not use.
 */
export async function importPeer<T>(name: string): Promise<T | null> {
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as T;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

// The error for a port that another process uses. The command prints one line that says what to do and exits with 1,
// since the port may be free at the next start. It isn't a `ConfigError`: the setting isn't wrong.

export class PortInUse extends Error {
  override name = 'PortInUse'

  /** `setting`: the setting that chooses the port; `address`: `host:port`. */
  constructor(setting: string, address: string) {
    super(`${setting}: something listens on ${address} already; end that process, or set another port`)
  }
}

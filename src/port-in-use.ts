// The error for a port that another process uses: one line that says what to do, and exit 1, since the port may be free at
// the next start. It isn't a wrong setting.

export class PortInUse extends Error {
  override name = 'PortInUse'

  /** `setting` names the port, `address` is `host:port`. */
  constructor(setting: string, address: string) {
    super(`${setting}: something listens on ${address} already; end that process, or set another port`)
  }
}

// A port that another process has: one line that says what to do, and exit 1, since it may be free at the next try.
// It isn't a wrong setting.

export class PortInUse extends Error {
  override name = 'PortInUse'

  /** `setting` names the port, `address` is `host:port`. */
  constructor(setting: string, address: string) {
    super(`${setting}: something listens on ${address} already; end that process, or set another port`)
  }
}

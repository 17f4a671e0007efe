// The driver's client, connected to one of several hosts; the driver itself knows only one. session.ts configures the
// connection.
import type { Socket } from 'node:net'
import pg from 'pg'
import type { Host } from './hosts.ts'

/** A client that connects to a host of a list, or to the host of the URL. */
export class PlacedClient extends pg.Client {
  #isHeld = false

  constructor(config: pg.ClientConfig, host: Host | undefined) {
    super(config)
    this.place(host)
    // An error between two statements is ignored here: the next statement on this connection fails.
    this.on('error', () => undefined)
  }

  place(host: Host | undefined): void {
    if (host) Object.assign(this, host)
  }

  /**
   * Sends everything of this turn of the event loop by one system call, because a system call costs more than a small
   * statement.
   */
  sendTogether(): void {
    if (this.#isHeld) return
    const { stream } = this.connection as unknown as { stream: Socket }
    this.#isHeld = true
    stream.cork()
    process.nextTick(() => {
      this.#isHeld = false
      stream.uncork()
    })
  }

  /** Ends the connection even if the server doesn't answer. */
  cut(): void {
    const { stream } = this.connection as unknown as { stream: Socket }
    stream.destroy()
  }
}

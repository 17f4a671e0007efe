// The driver's client, connected to one of several hosts: the driver itself knows one only. session.ts configures it.
import type { Socket } from 'node:net'
import pg from 'pg'
import type { Host } from './hosts.ts'

/** Connects to a host of a list, or where the URL says. */
export class PlacedClient extends pg.Client {
  constructor(config: pg.ClientConfig, host: Host | undefined) {
    super(config)
    this.place(host)
    // A connection that dies between two statements reports to nobody: the next statement on it fails.
    this.on('error', () => undefined)
  }

  place(host: Host | undefined): void {
    if (host) Object.assign(this, host)
  }

  /** Ends the connection even if the server doesn't answer. */
  cut(): void {
    const { stream } = this.connection as unknown as { stream: Socket }
    stream.destroy()
  }
}

// The driver's client, put on one of several hosts: the driver itself knows of one only. It is settled by others.
import type { Socket } from 'node:net'
import pg from 'pg'
import type { Host } from './hosts.ts'

/** Connects to a host of a list, or where the URL says. */
export class PlacedClient extends pg.Client {
  constructor(config: pg.ClientConfig, host: Host | undefined) {
    super(config)
    this.place(host)
    // A connection that dies between two statements has nobody to tell: the next statement on it fails.
    this.on('error', () => undefined)
  }

  place(host: Host | undefined): void {
    if (host) Object.assign(this, host)
  }

  /** Ends it though the other side doesn't answer. */
  cut(): void {
    const { stream } = this.connection as unknown as { stream: Socket }
    stream.destroy()
  }
}

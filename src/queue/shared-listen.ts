// One connection listens for all workers of a process. BullMQ would listen on a connection of each worker: PostgreSQL
// wakes every listening connection at each change of any queue, so the wake-ups would cost more than the jobs. BullMQ's
// own connections stay open, because their names tell which queues have workers.

interface Client {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
  on(event: string, listener: (what: never) => void): unknown
  removeListener(event: string, listener: (what: never) => void): unknown
  removeAllListeners(event?: string): unknown
  emit(event: string, what: unknown): unknown
  release(destroy?: boolean): void
}

interface Listening {
  /** Resolves once the connection listens. */
  ready: Promise<void>
  end(): void
}

const LISTEN = /^(--.*\n|\s)*LISTEN bullmq_jobs\b/

/**
 * Returns a `connect` for BullMQ. A client of it that says LISTEN gets the notifications of the common connection. If
 * that connection is lost, each of these clients has the error, as if it had lost its own: BullMQ then replaces the
 * client, and listens again.
 */
export function shareListening(connect: () => Promise<unknown>): () => Promise<unknown> {
  const open = connect as () => Promise<Client>
  const hearers = new Set<Client>()
  let listening: Listening | undefined

  function tell(event: string, what: unknown): void {
    for (const hearer of [...hearers]) hearer.emit(event, what)
  }

  function listen(): Listening {
    let client: Client | undefined
    let isOver = false
    /** Destroys the connection, because the pool would hand it on while it listens. */
    function end(): void {
      isOver = true
      client?.removeAllListeners('notification')
      client?.release(true)
      client = undefined
      if (listening === own) listening = undefined
    }
    function lose(error: Error): void {
      if (isOver) return
      end()
      tell('error', error)
    }
    async function start(): Promise<void> {
      const opened = await open()
      client = opened
      opened.on('notification', note => tell('notification', note))
      opened.on('error', lose)
      if (isOver) end()
      else await opened.query('listen bullmq_jobs')
    }
    const own: Listening = { ready: start(), end }
    own.ready.catch(() => isOver || end())
    return own
  }

  async function join(client: Client): Promise<{ rows: unknown[] }> {
    hearers.add(client)
    listening ??= listen()
    await listening.ready
    // BullMQ would think that it listens by a client that it has lost meanwhile.
    if (!hearers.has(client)) throw new Error('the connection was lost before it listened')
    return { rows: [] }
  }

  function leave(client: Client): void {
    hearers.delete(client)
    if (hearers.size === 0) listening?.end()
  }

  return async () => {
    const client = await open()
    return {
      query: (text: string, values?: unknown[]) => (LISTEN.test(text) ? join(client) : client.query(text, values)),
      on: client.on.bind(client),
      removeListener: client.removeListener.bind(client),
      removeAllListeners: client.removeAllListeners.bind(client),
      release(destroy?: boolean) {
        leave(client)
        client.release(destroy)
      },
    }
  }
}

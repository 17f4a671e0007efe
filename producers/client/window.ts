// Chunks that were sent and aren't written yet. A bounded number is unanswered; the others wait for an older chunk, so
// that all are written in the order of the file: a few in memory, the rest where the caller keeps them. What a chunk holds
// isn't known here.

/** Keeps the ends of chunks, which are smaller than the chunks. */
export interface WaitingEnds<E> {
  put(position: number, end: E): Promise<void>
  take(position: number): Promise<E>
  /** It has as much as it may hold. */
  isFull(): boolean
}

interface Steps<C, R, E> {
  limits(): Limits
  /** What is written of an answered chunk. Throws if the run must end. */
  endOf(chunk: C, answer: R): E | Promise<E>
  /** Called in the order of the chunks. */
  write(end: E): Promise<void>
  /** Undefined: no chunk waits in it. */
  waiting: WaitingEnds<E> | undefined
  /** What a chunk may change; it is sent once no unanswered chunk may change any of it. Undefined: chunks need no order. */
  touched?: ((chunk: C) => Touched) | undefined
}

/** Names of what may be changed; `all` if nobody can tell. */
export type Touched = ReadonlySet<string> | 'all'

export interface Limits {
  /** The most chunks without an answer. Of the others, so many wait as they are. */
  unanswered: number
  /** All chunks wait as they are: so many may be sent and not written. */
  unwritten?: number | undefined
}

export interface Window<C, R> {
  /** How many chunks are sent and not written. */
  size(): number
  /** The oldest chunk, if it is unanswered and a later one isn't. */
  awaited(): C | undefined
  /** Resolves once this chunk may be sent. Rejects as a chunk's answer, `endOf` or `write` does. */
  room(chunk: C): Promise<void>
  push(chunk: C, answer: Promise<R>): void
  /** Resolves once all chunks are written. */
  drain(): Promise<void>
}

interface Sent<C, R> {
  chunk: C
  position: number
  answer: Promise<R>
  state: 'unanswered' | 'answered' | 'put' | 'wrong'
  touched: Touched | undefined
}

export function openWindow<C extends { position: number }, R, E>(steps: Steps<C, R, E>): Window<C, R> {
  const { limits, endOf, write, waiting, touched } = steps
  const window: Sent<C, R>[] = []
  /** What the chunk may change for which there was room last. */
  let next: Touched | undefined
  let unanswered = 0
  let change = Promise.withResolvers<void>()

  function hasRoom(): boolean {
    const { unanswered: most, unwritten } = limits()
    return unwritten === undefined ? unanswered < most && waiting?.isFull() !== true : window.length < unwritten
  }

  function mustWait(): boolean {
    const names = next
    if (names === undefined) return false
    return window.some(sent => sent.state === 'unanswered' && sent.touched && !areApart(sent.touched, names))
  }

  /** The newest chunk in memory, if more of them wait than may. */
  function excess(): Sent<C, R> | undefined {
    const { unanswered: most, unwritten } = limits()
    if (unwritten !== undefined || waiting === undefined || waiting.isFull() || window.length <= unanswered + most)
      return undefined
    const inMemory = window.filter(({ state }) => state === 'answered')
    return inMemory.length > most ? inMemory.at(-1) : undefined
  }

  async function putAway(sent: Sent<C, R>): Promise<void> {
    let end: E
    try {
      end = await endOf(sent.chunk, await sent.answer)
    } catch {
      // It is told in its turn: the chunks before it are written first.
      sent.state = 'wrong'
      return
    }
    await waiting?.put(sent.position, end)
    sent.state = 'put'
    // The rows of the chunk must not stay in memory.
    sent.chunk = undefined as unknown as C
    sent.answer = undefined as unknown as Promise<R>
  }

  const isOldestAnswered = () => window[0] !== undefined && window[0].state !== 'unanswered'

  async function writeOldest(): Promise<void> {
    const [oldest] = window
    if (!oldest) return
    const { chunk, position, answer, state } = oldest
    const end = waiting && state === 'put' ? await waiting.take(position) : await endOf(chunk, await answer)
    window.shift()
    await write(end)
  }

  async function step(): Promise<void> {
    if (isOldestAnswered()) return writeOldest()
    const sent = excess()
    if (sent) return putAway(sent)
    change = Promise.withResolvers()
    await change.promise
  }

  return {
    size: () => window.length,
    awaited: () => (!isOldestAnswered() && window.length > unanswered ? window[0]?.chunk : undefined),
    async room(chunk) {
      next = touched?.(chunk)
      while (!hasRoom() || excess() || mustWait()) await step()
      // Some are written before each chunk, so that they don't gather while there is room.
      for (let written = 0; written < limits().unanswered && isOldestAnswered(); written += 1) await writeOldest()
    },
    push(chunk, answer) {
      const sent: Sent<C, R> = { chunk, position: chunk.position, answer, state: 'unanswered', touched: next }
      window.push(sent)
      unanswered += 1
      const settle = () => {
        sent.state = 'answered'
        sent.touched = undefined
        unanswered -= 1
        change.resolve()
      }
      answer.then(settle, settle)
    },
    async drain() {
      while (window.length > 0) await step()
    },
  }
}

/** Whether they have nothing in common. */
function areApart(one: Touched, other: Touched): boolean {
  if (one === 'all' || other === 'all') return false
  for (const name of one) if (other.has(name)) return false
  return true
}

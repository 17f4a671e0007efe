// Keeps pages live: a stream of server-sent events for each page that is watched. What pages show is read once every two
// seconds for all streams of one view, and only while somebody watches.
//
// A page becomes live in three steps (now/now.ts is an example):
// 1. its markup comes of a `LivePart` (texts.ts), within `liveFrame`, which also loads `browser/live.js`;
// 2. a route of its own, with `UNCOUNTED`, calls `deps.live.open(request, reply, view)`;
// 3. the view's key names the page and the sight (`batch-42 all`), because all streams of a key get the same texts.
import { PassThrough } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../../src/clock.ts'
import { assert } from '../../../src/errors.ts'
import { describeError, type Logger } from '../../../src/logger.ts'
import * as displays from '../../../src/store/console/installation/displays.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import type { Store } from '../../../src/store/pool.ts'
import { changesOf, type LiveTexts, type Texts } from './texts.ts'

export const LIVE = {
  everyMs: 2_000,
  /** After this time without news a page says `unknown`; `browser/live.js` has the same number. */
  newsMs: 10_000,
  streamsOfSessionMax: 4,
  streamsMax: 500,
  /** A reader who takes no news this often in a row is given up. */
  skippedMax: 30,
  /** How many views are read at once: pages need connections to the store, too. */
  readersMax: 3,
} as const

export interface LiveView {
  /** Names the page and whose sight it is for. */
  key: string
  /**
   * Reads what the page shows now. A rejection is logged; the streams then get no news, and say so. `gone`: what the page shows
   * isn't there any more, or isn't theirs to see; the streams end.
   */
  read(): Promise<LiveTexts | 'gone'>
}

export interface Live {
  /** Answers with a stream of the view. The request needs a session, or is a wall display's. */
  open(request: FastifyRequest, reply: FastifyReply, view: LiveView): Promise<FastifyReply>
  /** How many streams are open. */
  streams(): number
  /** Ends all streams; further ones are refused. */
  close(): Promise<void>
}

/** Whose stream it is: a session's, or a wall display's. */
interface Watcher {
  isDisplay: boolean
  /** Of the cookie. */
  hash: Buffer
  /** Null: all. */
  entities: readonly string[] | null
}

interface Stream {
  output: PassThrough
  watcher: Watcher
  view: LiveView
  /** What its browser has. */
  sent: LiveTexts | undefined
  /** How often in a row it was passed over. */
  skipped: number
  /** It was sent the last of its view, and is over when that was taken. */
  isEnding: boolean
}

export interface LiveDeps {
  store: Store
  isEmbedded: boolean
  clock: Clock
  log: Logger
}

export function openLive(deps: LiveDeps): Live {
  const streams = new Set<Stream>()
  let timer: NodeJS.Timeout | undefined
  let turning: Promise<void> | undefined
  let isClosed = false

  const end = (stream: Stream, last?: string) => {
    streams.delete(stream)
    // A reader who takes nothing would keep his connection.
    if (stream.output.writableLength > 0 || stream.isEnding) stream.output.destroy()
    else stream.output.end(last)
  }
  const turn = async () => {
    await dropOver(deps, streams, end)
    const byKey = Map.groupBy(streams, ({ view }) => view.key)
    await eachOf([...byKey.values()], LIVE.readersMax, tell)
  }
  /** Reads what these streams show, which is the same for all of them. */
  const tell = async (ofView: readonly Stream[]) => {
    const [first] = ofView
    const read = first && (await readView(first.view, deps))
    if (read && read !== 'gone') for (const stream of ofView) send(stream, read)
    for (const stream of ofView) if (read === 'gone' || stream.skipped > LIVE.skippedMax) end(stream)
  }
  /** One turn at a time; the next one begins `everyMs` after the last began, or when that has ended. */
  const next = (ms: number) => {
    if (isClosed || timer || streams.size === 0) return
    timer = setTimeout(() => {
      const began = performance.now()
      turning = turn()
        .catch(error => deps.log.warn({ error: describeError(error) }, 'the live pages have no news'))
        .finally(() => {
          timer = undefined
          turning = undefined
          next(Math.max(0, LIVE.everyMs - (performance.now() - began)))
        })
    }, ms)
  }

  return {
    async open(request, reply, view) {
      const watcher = watcherOf(request)
      const own = [...streams].filter(one => one.watcher.hash.equals(watcher.hash))
      if (own.length >= LIVE.streamsOfSessionMax || streams.size >= LIVE.streamsMax || isClosed)
        return reply
          .code(isClosed ? 503 : 429)
          .type('text/plain; charset=utf-8')
          .send('Too many live pages are open.\n')
      // It holds next to nothing, so that a reader who is slow is seen to be.
      const output = new PassThrough({ readableHighWaterMark: 1, writableHighWaterMark: 1 })
      const stream: Stream = { output, watcher, view, sent: undefined, skipped: 0, isEnding: false }
      streams.add(stream)
      output.on('close', () => streams.delete(stream))
      output.on('error', () => streams.delete(stream))
      output.write('retry: 2000\n\n')
      const read = await readView(view, deps)
      if (read && read !== 'gone' && streams.has(stream)) send(stream, read)
      if (read === 'gone') output.end()
      if (request.raw.socket.destroyed) end(stream)
      next(LIVE.everyMs)
      return reply
        .headers({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' })
        .send(output)
    },
    streams: () => streams.size,
    async close() {
      isClosed = true
      clearTimeout(timer)
      for (const stream of streams) end(stream)
      await turning
    },
  }
}

async function readView(view: LiveView, { log }: Pick<LiveDeps, 'log'>): Promise<LiveTexts | 'gone' | undefined> {
  return view.read().catch(error => {
    log.warn({ error: describeError(error) }, 'a live page could not be read')
    return undefined
  })
}

function watcherOf({ session, display }: FastifyRequest): Watcher {
  if (display) return { isDisplay: true, hash: display.linkHash, entities: display.entities }
  assert(session, 'a live page has a session, or is a display')
  return { isDisplay: false, hash: session.sessionHash, entities: session.entities }
}

/** Tells a display that it shows nothing more, so that nobody has to reload it. A session's page says `unknown`. */
const OVER = 'event: over\ndata: over\n\n'

/** Ends the streams of sessions and displays that are over, and of people who see something else now. */
async function dropOver(
  deps: Pick<LiveDeps, 'store' | 'isEmbedded'>,
  streams: ReadonlySet<Stream>,
  end: (stream: Stream, last?: string) => void,
): Promise<void> {
  const asked = [...streams]
  const sees = await listSees(deps, asked)
  for (const stream of asked) {
    const { hash, entities, isDisplay } = stream.watcher
    if (sees.get(hash.toString('hex')) !== JSON.stringify(entities)) end(stream, isDisplay ? OVER : undefined)
  }
}

/** The entities of those whose cookies are still good, by the cookie's hash. */
async function listSees(
  { store, isEmbedded }: Pick<LiveDeps, 'store' | 'isEmbedded'>,
  streams: readonly Stream[],
): Promise<Map<string, string>> {
  const hashesOf = (isDisplay: boolean) => {
    const own = streams.filter(({ watcher }) => watcher.isDisplay === isDisplay)
    return [...new Map(own.map(({ watcher: { hash } }) => [hash.toString('hex'), hash])).values()]
  }
  const [ofSessions, ofDisplays] = [hashesOf(false), hashesOf(true)]
  const live = ofSessions.length === 0 ? [] : await sessions.listLive(store, ofSessions)
  const walls = ofDisplays.length === 0 ? [] : await displays.listLive(store, ofDisplays)
  return new Map([
    ...live
      .filter(({ isLocal }) => !isLocal || isEmbedded)
      .map(({ sessionHash, entities }) => [sessionHash.toString('hex'), JSON.stringify(entities)] as const),
    ...walls.map(({ linkHash, entities }) => [linkHash.toString('hex'), JSON.stringify(entities)] as const),
  ])
}

/**
 * Sends what has changed for this stream's browser, and ends the stream after the last of a view. A reader who hasn't taken the
 * last news is passed over.
 */
function send(stream: Stream, read: LiveTexts): void {
  const { output, sent, isEnding } = stream
  if (isEnding || (output.writableLength > 0 && sent)) {
    stream.skipped += 1
    return
  }
  output.write(messageOf(sent, read))
  if (read.isLast) {
    stream.isEnding = true
    output.end()
  }
  stream.sent = read
  stream.skipped = 0
}

/** Most streams of a view have the same before and after, so their message is made once. */
const messages = new WeakMap<LiveTexts, { before: LiveTexts | undefined; message: string }>()

function messageOf(before: LiveTexts | undefined, after: LiveTexts): string {
  const known = messages.get(after)
  if (known && known.before === before) return known.message
  const texts: Texts = changesOf(before?.texts, after.texts)
  const gone = before ? Object.keys(before.texts).filter(key => !(key in after.texts)) : []
  const { at, shape, isLast } = after
  const message = `data: ${JSON.stringify({ at, shape, texts, ...(gone.length > 0 ? { gone } : {}), isLast })}\n\n`
  messages.set(after, { before, message })
  return message
}

/** Calls `work` for each item, at most `most` at a time. */
async function eachOf<T>(items: readonly T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const one = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: most }, one))
}

// Workers, Redis, scheduler and store are stopped in turn, each for real. 10 s later no page and no stream of the console says well of
// what only that part could show. All pages share each wait.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LIVE } from '../../../../producers/console/live/live.ts'
import { childrenRunning } from '../../../chaos/bundle.ts'
import { findRedis } from '../../../support/redis.ts'
import { until } from '../../../support/until.ts'
import { openListener, type Reading } from '../live/listen.ts'
import { withoutStore } from '../without-store.ts'
import { type Claim, claimsIn } from './claims.ts'
import { PARTS, type Part, VIEWS, type View } from './views.ts'
import { openWorld, type World } from './world.ts'

const WITHIN_MS = 10_000
const hasRedis = findRedis() !== undefined

let world: World
const { listen, stop } = openListener(() => world.bundle.origin)
const streams = new Map<View, Reading>()

beforeAll(async () => {
  if (!hasRedis) return
  world = await openWorld()
  await world.work()
  for (const view of VIEWS)
    if (view.isStream) streams.set(view, await listen(view.cookie(world), { path: view.path(world) }))
})
afterAll(async () => {
  stop()
  await world?.close()
})

async function claimsOf(view: View): Promise<Claim[]> {
  const reading = streams.get(view)
  if (reading) return isSilent(reading) ? [] : claimsIn(markupOf(reading))
  return claimsIn((await world.bundle.call('GET', view.path(world), { cookie: view.cookie(world) })).text)
}

/**
 * The browser then says `unknown` of the whole page (browser/live.js). A message that was under way when a part was stopped may have
 * come a moment later.
 */
function isSilent({ isOver, heardAt }: Reading): boolean {
  return isOver || performance.now() - heardAt > LIVE.newsMs - 1_000
}

/** What the browser has by now, in the form of the page. */
function markupOf({ messages }: Reading): string {
  const texts = new Map<string, string>()
  for (const message of messages) {
    for (const key of message.gone ?? []) texts.delete(key)
    for (const [key, text] of Object.entries(message.texts)) texts.set(key, text)
  }
  return [...texts]
    .map(([key, text]) => {
      const [id, attribute] = key.split('@')
      return attribute === undefined ? `<i id="${id}">${text}</i>` : `<i id="${id}" ${attribute}="${text}"></i>`
    })
    .join('\n')
}

/** The views that are asked when this part is stopped. */
const viewsAt = (part: Part) =>
  VIEWS.filter(({ last }) => last === undefined || PARTS.indexOf(part) <= PARTS.indexOf(last))
/** The claims of these views. */
const look = (views: readonly View[]) => Promise.all(views.map(async view => ({ view, claims: await claimsOf(view) })))
const tableOf = ({ claims }: View) => Object.keys(claims) as Claim[]
const endsWithout = (part: Part, { claims }: View, claim: Claim) =>
  part === 'store' || (claims[claim] ?? PARTS).includes(part)
const named = ({ name }: View, claims: readonly Claim[]) => claims.map(claim => `${name}: ${claim}`)

const LATE_MS = 5_000

const textOf = async (path: string) => (await world.bundle.call('GET', path, { cookie: world.cookies.whole })).text

/** Waits until `wrongOf` finds nothing wrong in any view. A view that was right is not looked at again. */
async function untilRight(
  views: readonly View[],
  wrongOf: (view: View, claims: readonly Claim[]) => string[],
): Promise<void> {
  let left = views
  let wrong: string[] = []
  const isRight = async () => {
    await world.work()
    const found = (await look(left)).map(({ view, claims }) => ({ view, wrong: wrongOf(view, claims) }))
    const still = found.filter(one => one.wrong.length > 0)
    left = still.map(({ view }) => view)
    wrong = still.flatMap(one => one.wrong)
    return left.length === 0
  }
  await until(isRight, { what: 'what is well' }).catch(() => expect(wrong).toEqual([]))
}

/** Waits until the views say all that the stop of this part must end. */
const isWellBefore = (part: Part) =>
  untilRight(viewsAt(part), (view, claims) =>
    named(
      view,
      tableOf(view).filter(claim => endsWithout(part, view, claim) && !claims.includes(claim)),
    ),
  )

/**
 * Of what the views say 10 s after the part was stopped, all that it alone could show. On a busy machine a message of a stream
 * may be late: then the streams are looked at once more. A page has no such excuse.
 */
async function saidWithout(part: Part): Promise<string[]> {
  const stoppedAt = performance.now()
  const saidAt = async (ms: number, views: readonly View[]) => {
    await until(() => performance.now() - stoppedAt >= ms, { what: 'the 10 s' })
    return (await look(views)).flatMap(({ view, claims }) =>
      named(
        view,
        claims.filter(claim => endsWithout(part, view, claim)),
      ),
    )
  }
  const streams = viewsAt(part).filter(({ isStream }) => isStream)
  const pages = viewsAt(part).filter(({ isStream }) => !isStream)
  const [onPages, onStreams] = await Promise.all([saidAt(WITHIN_MS, pages), saidAt(WITHIN_MS, streams)])
  return onStreams.length === 0 ? onPages : [...onPages, ...(await saidAt(WITHIN_MS + LATE_MS, streams))]
}

/** What pages say in place of what they said before, with since when. */
const wordsWithoutWorkers = ({ running, inWork, run }: World): Record<string, RegExp> => ({
  '/now': /Unknown since \d\d:\d\d:\d\d<|something can’t be seen/,
  [`/batches/${running}`]: /Whether it goes on is unknown since <[^>]*>\d\d:\d\d:\d\d</,
  [inWork]: /Unknown since \d\d:\d\d:\d\d: a worker took the job/,
  [run]: /whether it is being made is not known/,
  '/installation': /UNKNOWN, silent for \d+ s/,
})

describe.skipIf(!hasRedis)('the console', () => {
  it('says well on each page while everything runs, as the table has it', async () => {
    await untilRight(VIEWS, (view, claims) => [
      ...named(
        view,
        tableOf(view).filter(claim => !claims.includes(claim)),
      ),
      ...named(
        view,
        claims.filter(claim => view.claims[claim] === undefined),
      ).map(one => `${one}, which the table has not`),
    ])
  })

  it('says nothing of the kind without workers', async () => {
    await isWellBefore('workers')
    const pids = childrenRunning('worker-process.ts')
    expect(pids).toHaveLength(2)
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    try {
      expect(await saidWithout('workers')).toEqual([])
      const said = await Promise.all(
        Object.entries(wordsWithoutWorkers(world)).map(async ([path, words]) =>
          words.test(await textOf(path)) ? [] : [path],
        ),
      )
      expect(said.flat()).toEqual([])
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    }
  })

  it('says nothing of the kind without Redis', async () => {
    await isWellBefore('Redis')
    await world.redis.kill9()
    try {
      expect(await saidWithout('Redis')).toEqual([])
    } finally {
      await world.redis.restart()
    }
  })

  it('says nothing of the kind without a scheduler', async () => {
    await isWellBefore('scheduler')
    await world.scheduler.lifetime.close()
    expect(await saidWithout('scheduler')).toEqual([])
    expect(await textOf('/now')).toContain('no scheduler lives')
  })

  it('says nothing of the kind without the store', async () => {
    await world.work()
    await withoutStore(world.bundle, async () => {
      expect(await saidWithout('store')).toEqual([])
      const { status } = await world.bundle.call('GET', '/now', { cookie: world.cookies.whole })
      expect(status).toBe(503)
    })
  })
})

// What a page says that can't be shown because something is away: what is known, since when, what waits and what goes on. Only
// this process knows it then, so it notes when the store last answered it.
import type { Clock } from '../../../src/clock.ts'
import type { FaultCode } from '../../../src/errors.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, moment } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { framed, type Page } from './page.ts'

/** `answeredAt`: when a statement of this store last ended well (ms since the epoch); before the first one, now. */
export function noteAnswers(store: Store, clock: Clock): { store: Store; answeredAt: () => number } {
  let at = clock()
  const noted = async <T>(answer: Promise<T>): Promise<T> => {
    const given = await answer
    at = clock()
    return given
  }
  return {
    store: {
      ...store,
      query: statement => noted(store.query(statement)),
      transaction: (work, options) => noted(store.transaction(work, options)),
    },
    answeredAt: () => at,
  }
}

interface Said {
  known: string
  /** What is said of the moment at which the store last answered; undefined: it answers, and Now says since when. */
  since?: string
  rest: string
}

const QUEUES: Said = {
  known: 'The queues do not answer the console.',
  rest: 'Pages that need the store alone are shown, Now among them, which says since when. No act is done meanwhile. Nothing is lost: what waits in the queues stays there.',
}
const STORE: Said = {
  known: 'The store does not answer the console.',
  since: 'It last answered at',
  rest: 'Until it answers, no page is shown and no act is done. Nothing is lost: workers keep their jobs, and go on by themselves.',
}
const BUSY: Said = {
  known: 'The store did not read this page in time, or is short of connections.',
  since: 'It last answered the console at',
  rest: 'Other pages may be shown. Nothing is lost. Load this page again in a moment.',
}

function saidOf(code: FaultCode): Said {
  if (code === 'queue_away') return QUEUES
  return code === 'store_away' ? STORE : BUSY
}

export interface Away {
  code: FaultCode
  /** Stands in the log, too. */
  requestId: string
  session: Page['session']
}

export function awayPage(deps: Pick<ConsoleDeps, 'name' | 'environment' | 'answeredAt'>, away: Away): Html {
  const { known, rest } = saidOf(away.code)
  const content = html`<h1>Not shown</h1>
<p>${known} ${sinceOf(deps, away)}</p>
<p>${rest}</p>
<p class="same">${command('tokenmill', 'status')} says more. The console’s log has it under the request <code>${away.requestId}</code>.</p>`
  return framed(deps, { title: 'Not shown', session: away.session, content })
}

/** Since when the store has not answered: `It last answered at 2026-11-24 12:03:11 UTC.` */
export function sinceOf(
  { answeredAt }: Pick<ConsoleDeps, 'answeredAt'>,
  { code }: Pick<Away, 'code'>,
): Html | undefined {
  const { since } = saidOf(code)
  return since === undefined ? undefined : html`${since} ${moment(answeredAt())} UTC.`
}

/** The same as a text, for the module passkey.js. */
export function awayText(
  { answeredAt }: Pick<ConsoleDeps, 'answeredAt'>,
  { code, requestId }: Omit<Away, 'session'>,
): string {
  const { known, since, rest } = saidOf(code)
  const at = new Date(answeredAt()).toISOString().slice(0, 19).replace('T', ' ')
  return `${known} ${since === undefined ? '' : `${since} ${at} UTC. `}${rest} (Request ${requestId}.)`
}

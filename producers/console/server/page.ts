// The frame of every page: the bar with the installation's name, the rail, and the content.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html, type Path, path, type Value } from '../html.ts'
import { STYLES } from './assets.ts'

export interface Page {
  /** Names no batch, reference or person: titles end up in histories and on shared screens. */
  title: string
  /** Null: nobody has signed in. */
  session: (Pick<LiveSession, 'name' | 'isLocal'> & Partial<Pick<LiveSession, 'entities'>>) | null
  /** The entry of the rail that the page belongs to. */
  at?: 'now' | 'batches' | 'explain' | 'failed' | 'reports' | 'audit' | 'people' | 'installation' | 'sessions'
  /** Whether the page asks for a passkey. */
  usesPasskey?: boolean
  /** The page asks for itself again every two seconds. */
  isWaiting?: boolean
  /** Another site, to which the browser goes on at once. */
  goesTo?: URL
  content: Html
}

/** `isWhole`: only for people who see the whole installation. */
export const RAIL: readonly { at: NonNullable<Page['at']>; to: Path; text: string; isWhole?: true }[] = [
  { at: 'now', to: path`/now`, text: 'Now' },
  { at: 'batches', to: path`/batches`, text: 'Batches' },
  { at: 'explain', to: path`/explain`, text: 'Explain' },
  { at: 'failed', to: path`/failed`, text: 'Failed' },
  { at: 'reports', to: path`/reports`, text: 'Reports' },
  { at: 'audit', to: path`/audit`, text: 'Audit' },
  { at: 'people', to: path`/people`, text: 'People', isWhole: true },
  { at: 'installation', to: path`/installation`, text: 'Installation', isWhole: true },
  { at: 'sessions', to: path`/sessions`, text: 'Your sessions' },
]

const SCRIPT = html`<script type="module" src="/passkey.js"></script>`
const COPY = html`<script type="module" src="/copy.js"></script>`
/** It is posted: what people look for stands in no address. */
const SEARCH = html`<form class="search" method="post" action="/search" role="search"><input name="what" aria-label="Explain a job, token or batch" placeholder="jti, reference, token, batch…" maxlength="300" autocomplete="off" spellcheck="false" required><button class="quiet" type="submit">Explain</button></form>`
/** Opens the rail where the screen is too narrow for it. It needs no script, and Escape closes it. */
const MENU = html`<button class="menu" type="button" popovertarget="rail">Menu</button>`
/** With scripts, waiting.js asks instead: a page that is loaded anew all the time can't be listened to. */
const AGAIN = html`<noscript><meta http-equiv="refresh" content="2"></noscript>`
const WAITING = html`<script type="module" src="/waiting.js"></script>`

type Framed = Pick<ConsoleDeps, 'name' | 'environment'>

export function framed({ name, environment }: Framed, page: Page): Html {
  const { title, session, at, usesPasskey = false, isWaiting = false, goesTo, content } = page
  const entry = ({ at: own, to, text }: (typeof RAIL)[number]) =>
    own === at
      ? html`<li><a href="${to}" aria-current="page">${text}</a></li>`
      : html`<li><a href="${to}">${text}</a></li>`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · tokenmill</title>
<link rel="icon" href="/icon.svg">
${STYLES}
${when(isWaiting, AGAIN)}${goesTo === undefined ? undefined : html`<meta http-equiv="refresh" content="0; url=${goesTo.href}">`}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<a class="name" href="/">${name}</a>
${environmentWord(environment)}
${session ? SEARCH : undefined}
${session ? personIn(session) : undefined}
</header>
${session ? html`${MENU}<nav class="rail" id="rail" popover="auto" aria-label="Pages"><ul>${railOf(session).map(entry)}</ul></nav>` : undefined}
<main id="content" tabindex="-1">${content}</main>
${when(usesPasskey, SCRIPT)}
${when(session !== null, COPY)}
${when(isWaiting, WAITING)}
</body>
</html>
`
}

/** People for some entities aren't led to pages that answer them as pages that don't exist. */
function railOf({ entities }: NonNullable<Page['session']>): typeof RAIL {
  return RAIL.filter(({ isWhole = false }) => !isWhole || (entities ?? null) === null)
}

/** One word alone has a colour, so that nobody takes it for another. */
function environmentWord(environment: string | undefined): Html | undefined {
  if (environment === undefined) return undefined
  return environment === 'PRODUCTION'
    ? html`<strong class="environment production">${environment}</strong>`
    : html`<span class="environment">${environment}</span>`
}

function personIn({ name }: Pick<LiveSession, 'name'>): Html {
  return html`<span class="person">${name}</span>
<form method="post" action="/sign-out"><button class="quiet" type="submit">Sign out</button></form>`
}

/** What a page that shows nothing says: why, in one sentence. */
export function refusedPage(deps: Framed, text: string, session: Page['session'] = null, title = 'Refused'): Html {
  const back = session ? html`<p><a href="/batches">All batches</a></p>` : html`<p><a href="/sign-in">Sign in</a></p>`
  return framed(deps, { title, session, content: html`<h1>${title}</h1><p>${text}</p>${back}` })
}

/** The module passkey.js shows a text, in place of a page. */
export function wantsText({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return headers['content-type']?.startsWith('application/json') ?? false
}

/** A page that shows nothing, or for the module passkey.js its text. */
export function refuse(
  deps: Framed,
  { headers, session }: Pick<FastifyRequest, 'headers' | 'session'>,
  reply: FastifyReply,
  { status, text, title }: { status: number; text: string; title?: string },
): FastifyReply {
  if (wantsText({ headers })) return reply.code(status).send({ text })
  return sendPage(reply, status, refusedPage(deps, text, session, title))
}

/** The same answer for what doesn't exist and for what isn't the person's. */
export function missingPage(deps: Framed, session: Page['session']): Html {
  return refusedPage(deps, 'There is no such page, or it is not yours to see.', session, 'Not found')
}

export function sendPage(reply: FastifyReply, status: number, page: Html): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').send(page.toString())
}

export function when(holds: boolean, value: Value): Value {
  return holds ? value : undefined
}

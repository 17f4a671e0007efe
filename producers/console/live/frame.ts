// The frame of a live part in a page: where its stream is, and what says that there is no news.
import { type Html, html, type Path } from '../html.ts'
import type { LiveTexts } from './texts.ts'

const SCRIPT = html`<script type="module" src="/live.js"></script>`

interface Paths {
  stream: Path
  /** The page's own path for asking anew, whose requests don't keep the session alive. */
  again: Path
}

/**
 * Without scripts the page asks for itself every 10 s. A page that is longer than a screen puts the line of its news where it is
 * seen: its `content` is a function of that line. Otherwise the line is at the end.
 */
export function liveFrame(
  { at, shape }: LiveTexts,
  { stream, again }: Paths,
  content: Html | ((news: Html) => Html),
): Html {
  const news = html`<p class="news"><span data-news="">As of ${at} UTC.</span> <a href="${again}" data-changed="" hidden="">The page has changed: show it anew</a></p>`
  return html`<div class="live" data-live="${stream.text}" data-again="${again.text}" data-shape="${shape}" data-at="${at}">
${typeof content === 'function' ? content(news) : html`${content}\n${news}`}
<noscript><meta http-equiv="refresh" content="${`10; url=${again.text}`}"></noscript>
</div>
${SCRIPT}`
}

/** The same where nothing changes any more: no stream is opened, and the page isn't asked for anew. */
export function lastFrame({ again }: Pick<Paths, 'again'>, content: Html): Html {
  return html`<div data-again="${again.text}">
${content}
</div>
${SCRIPT}`
}

/** `12:03:11`, in UTC. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19)
}

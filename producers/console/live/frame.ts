// The frame of a live part in a page: where its stream is, and what says that there is no news.
import { type Html, html, type Path } from '../html.ts'
import type { LiveTexts } from './texts.ts'

const SCRIPT = html`<script type="module" src="/live.js"></script>`

/**
 * `stream`: the path of the stream. `again`: the page's own path for asking anew, whose requests don't keep the session alive.
 * Without scripts the page asks for itself every 10 s.
 */
export function liveFrame(
  { at, shape }: LiveTexts,
  { stream, again }: { stream: Path; again: Path },
  content: Html,
): Html {
  return html`<div class="live" data-live="${stream.text}" data-again="${again.text}" data-shape="${shape}" data-at="${at}">
${content}
<p class="news"><span data-news="">As of ${at} UTC.</span> <a href="${again}" data-changed="" hidden="">The page has changed: show it anew</a></p>
<noscript><meta http-equiv="refresh" content="${`10; url=${again.text}`}"></noscript>
</div>
${SCRIPT}`
}

/** `12:03:11`, in UTC. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19)
}

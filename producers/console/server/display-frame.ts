// The frame of a wall display: the installation's name, its environment and nothing to follow. It is dark, and read from afar.
import type { FastifyReply } from 'fastify'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html } from '../html.ts'
import { WALL_STYLES } from './assets.ts'

type Framed = Pick<ConsoleDeps, 'name' | 'environment'>

/** `isAskedAgain`: the page asks for itself again, without scripts, every 10 s. */
export function wall(
  { name, environment }: Framed,
  { content, script, isAskedAgain = false }: { content: Html; script?: Html; isAskedAgain?: boolean },
): Html {
  return html`<!doctype html>
<html lang="en" class="wall">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark">
<title>Display · tokenmill</title>
<link rel="icon" href="/icon.svg">
${WALL_STYLES}
${isAskedAgain ? html`<meta http-equiv="refresh" content="10; url=/display">` : undefined}
</head>
<body>
<header class="bar"><span class="name">${name}</span>${environment === undefined ? undefined : html`<span class="${environment === 'PRODUCTION' ? 'environment production' : 'environment'}">${environment}</span>`}</header>
<main id="content">${content}</main>
${script}
</body>
</html>
`
}

export const WALL_SCRIPT = html`<script type="module" src="/display.js"></script>`

export function sendWall(reply: FastifyReply, status: number, page: Html): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').send(page.toString())
}

/** The same answer for a display that was revoked, that has ended, and that never was. */
export function noDisplay(deps: Framed, reply: FastifyReply): FastifyReply {
  const content = html`<h1 class="sentence" data-tone="unknown">Nothing is shown here</h1>
<p>This display was revoked, or it has ended. ${html`<code class="command">tokenmill display add NAME</code>`} prints a new link.</p>`
  return sendWall(reply, 403, wall(deps, { content }))
}

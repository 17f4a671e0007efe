// The routes of wall displays. The link's value comes here once, by POST, and becomes the display's cookie; that cookie opens these
// routes and no other. A display has no session: it ends when it is revoked, and after 400 days.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Fault } from '../../../src/errors.ts'
import { describeError } from '../../../src/logger.ts'
import * as displays from '../../../src/store/console/installation/displays.ts'
import { entitiesOf, sightOf } from '../../../src/store/sight.ts'
import { type ConsoleApp, OPEN } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html, path } from '../html.ts'
import { liveFrame } from '../live/frame.ts'
import { openFacts } from '../now/facts.ts'
import { sinceOf } from '../server/away.ts'
import { hashOf, setCookie } from '../server/cookie.ts'
import { noDisplay, sendWall, WALL_SCRIPT, wall } from '../server/display-frame.ts'
import { displayOf } from '../server/guard.ts'
import { openAttempts } from '../session/attempts.ts'
import { TOO_MANY } from '../session/sign-in.ts'
import { wallOf } from './wall.ts'

const Form = z.object({ link: z.string().regex(/^[A-Za-z0-9_-]{43}$/) })

export function displayRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, clock } = deps
  const read = openFacts(deps)
  const { isTooManyFailed } = openAttempts(app)
  const DISPLAY = { config: { isDisplay: true }, errorHandler: away(deps) } as const
  const sightIn = (request: FastifyRequest) => sightOf(displayOf(request).entities)
  const show = async (request: FastifyRequest, reply: FastifyReply) => {
    const { content, texts } = wallOf(await read(sightIn(request)))
    const paths = { stream: path`/display/live`, again: path`/display/again` }
    return sendWall(reply, 200, wall(deps, { content: liveFrame(texts, paths, content), script: WALL_SCRIPT }))
  }

  app.get('/display/open', OPEN, async (_request, reply) => sendWall(reply, 200, openPage(deps)))

  app.post('/display/open', OPEN, async (request, reply) => {
    const value = Form.safeParse(request.body).data?.link
    const display = value === undefined ? undefined : await displays.find(store, hashOf(value))
    if (value === undefined || !display) {
      if (await isTooManyFailed(request)) return reply.code(429).type('text/plain; charset=utf-8').send(`${TOO_MANY}\n`)
      return noDisplay(deps, reply)
    }
    const { displayCookie: cookie, isSecure } = deps.site()
    const seconds = Math.floor((display.expiresAt - clock()) / 1000)
    return reply.header('set-cookie', setCookie(value, { cookie, isSecure }, seconds)).redirect('/display', 303)
  })

  app.get('/display', DISPLAY, show)
  app.get('/display/again', DISPLAY, show)
  app.get('/display/live', DISPLAY, (request, reply) => {
    const sight = sightIn(request)
    const whose = entitiesOf(sight)?.toSorted().join(' ') ?? 'all'
    return deps.live.open(request, reply, {
      key: `display ${whose}`,
      read: async () => wallOf(await read(sight)).texts,
    })
  })
}

/** Nobody stands before a display: a page that can't be shown says so, and asks again by itself. */
function away({ log, ...deps }: Pick<ConsoleDeps, 'log' | 'name' | 'environment' | 'answeredAt'>) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const isAway = error instanceof Fault && error.code !== 'defect'
    log[isAway ? 'warn' : 'error']({ request_id: request.id, error: describeError(error) }, 'a display is not shown')
    const content = html`<h1 class="sentence" data-tone="unknown">Unknown</h1>
<p>The store does not answer the console. ${isAway ? sinceOf(deps, error) : undefined} This page asks again every 10 seconds.</p>`
    return sendWall(reply, isAway ? 503 : 500, wall(deps, { content, isAskedAgain: true }))
  }
}

function openPage(deps: Pick<ConsoleDeps, 'name' | 'environment'>): Html {
  const content = html`<h1 class="sentence">Display</h1>
<form method="post" action="/display/open" data-display="">
<input type="hidden" name="link" value="">
<button class="main" type="submit" disabled="">Show</button>
<p data-status="" role="status"></p>
</form>
<noscript><p>Opening the link needs scripts: they take its value out of the address.</p></noscript>`
  return wall(deps, { content, script: WALL_SCRIPT })
}

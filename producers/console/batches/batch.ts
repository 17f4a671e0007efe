// The page of one batch, and its stream: the page stays live as long as the batch may still change.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sightOf } from '../../../src/store/sight.ts'
import { type ConsoleApp, UNCOUNTED } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { path } from '../html.ts'
import { lastFrame, liveFrame } from '../live/frame.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { contentOf } from './content.ts'
import { batchOf, openFacts, viewOf } from './facts.ts'

type Asked = FastifyRequest<{ Params: { no: string } }>

export function batchRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { read, readAgain } = openFacts(deps)

  const show = async (request: Asked, reply: FastifyReply) => {
    const session = sessionOf(request)
    const facts = await read(session, request.params.no)
    if (!facts) return sendPage(reply, 404, missingPage(deps, session))
    const { batchNo } = facts.batch
    const { content, texts } = contentOf(facts, session)
    const again = path`/batches/${batchNo}/again`
    const live = texts.isLast
      ? lastFrame({ again }, content(undefined))
      : liveFrame(texts, { stream: path`/batches/${batchNo}/live`, again }, content)
    return sendPage(reply, 200, framed(deps, { title: 'One batch', session, at: 'batches', content: live }))
  }
  app.get('/batches/:no', show)
  app.get('/batches/:no/again', UNCOUNTED, show)

  app.get('/batches/:no/live', UNCOUNTED, async (request: Asked, reply) => {
    const session = sessionOf(request)
    const batch = await batchOf(deps, session, request.params.no)
    if (!batch) return sendPage(reply, 404, missingPage(deps, session))
    return deps.live.open(request, reply, {
      key: viewOf(batch.batchNo, sightOf(session.entities)),
      async read() {
        const facts = await readAgain(session, request.params.no)
        return facts ? contentOf(facts).texts : 'gone'
      },
    })
  })
}

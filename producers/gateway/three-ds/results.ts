// The routes by which a challenge comes back, from callers without credentials: the result from the directory server,
// and the browser. Only the directory server knows the URL for the result. The browser's message only shows that the
// browser is back.
import { randomBytes } from 'node:crypto'
import { erro } from '../../../src/three-ds/messages.ts'
import { isProblem } from '../../../src/three-ds/problem.ts'
import { receiveResult, receiveReturn } from '../../../src/three-ds/result.ts'
import type { GatewayApp } from '../app.ts'
import { Declined } from '../server/error-bodies.ts'
import { handleError, type Reply, sendAny } from '../server/replies.ts'
import { RESULTS, RETURN, type ThreeDsDeps } from './deps.ts'
import { backPage, type Page, pagePolicy, strandedPage, waitingPage } from './return-page.ts'

/** No rate limit: a few addresses send the messages of many cardholders. */
const FOREIGN = { access: 'public', rateLimit: false } as const
const RESULT_BYTES_MAX = 64 * 1024
const FORM_BYTES_MAX = 16 * 1024

export function resultRoutes(app: GatewayApp, { ports, metrics, log }: ThreeDsDeps): void {
  app.register(async scope => {
    // EMV 3-D Secure answers an unreadable message with an Erro message; the HTTP status only says that the message
    // arrived.
    scope.setErrorHandler((error, request, reply) => {
      const { statusCode = 500 } = error as { statusCode?: number }
      const isTheirs = error instanceof Declined || statusCode < 500
      return isTheirs ? reply.code(200).send(erro('101', 'unknown')) : handleError(log)(error, request, reply)
    })
    scope.route({
      method: 'POST',
      url: `${RESULTS}/:key`,
      config: FOREIGN,
      bodyLimit: RESULT_BYTES_MAX,
      schema: { hide: true },
      handler: async ({ body, params }, reply) => {
        const { message, record, ended } = await receiveResult(ports, body, (params as { key: string }).key)
        if (ended && record) metrics.ended.inc({ outcome: record.state })
        return reply.code(200).send(message)
      },
    })
  })

  app.register(async scope => {
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: FORM_BYTES_MAX },
      (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
    )
    scope.route({
      method: 'POST',
      url: RETURN,
      config: FOREIGN,
      // The page is shown in a frame of the shop's page.
      helmet: { contentSecurityPolicy: false, frameguard: false },
      schema: { hide: true },
      handler: async ({ body }, reply) => {
        const { cres } = (body ?? {}) as Record<string, unknown>
        const text = typeof cres === 'string' ? cres : ''
        const returned = await receiveReturn(ports, text)
        if (isProblem(returned))
          return returned.problem === 409
            ? show(reply, 200, waitingPage(RETURN, text))
            : show(reply, 400, strandedPage())
        const { record, jwt } = returned
        const contract = await ports.contracts.find(record.contractId)
        if (!contract) return show(reply, 400, strandedPage())
        return show(reply, 200, backPage(contract.requestorUrl, { authenticationId: record.authenticationId, jwt }))
      },
    })
  })
}

function show<R extends Reply>(reply: R, status: number, page: Page): R {
  const nonce = randomBytes(16).toString('base64')
  reply.code(status)
  reply.type('text/html; charset=utf-8')
  reply.header('content-security-policy', pagePolicy(nonce, page.shop))
  return sendAny(reply, page.html(nonce))
}

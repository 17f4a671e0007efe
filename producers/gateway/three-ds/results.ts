// The routes by which a challenge comes back, from callers without credentials: the result from the directory server,
// and the browser. Only the directory server knows the URL for the result. The browser's message only shows that the
// browser is back.
import { randomBytes } from 'node:crypto'
import { returnText } from '../../../src/three-ds/browser-return.ts'
import { erro } from '../../../src/three-ds/messages.ts'
import type { Ports } from '../../../src/three-ds/ports.ts'
import { isProblem } from '../../../src/three-ds/problem.ts'
import type { Authentication } from '../../../src/three-ds/record.ts'
import { receiveResult, receiveReturn } from '../../../src/three-ds/result.ts'
import type { GatewayApp } from '../app.ts'
import { Declined } from '../error-bodies.ts'
import { handleError, logFailure, type Reply, sendAny } from '../server/replies.ts'
import { RESULTS, RETURN, type ThreeDsDeps } from './deps.ts'
import { backPage, NO_LOOKUP, type Page, pagePolicy, strandedPage, waitingPage } from './return-page.ts'

/** No rate limit: a few addresses send the messages of many cardholders. */
const FOREIGN = { access: 'public', rateLimit: false } as const
const RESULT_BYTES_MAX = 64 * 1024
/** A CRes may have ten extensions of 8,059 characters, which base64 and the form's escapes make longer. */
const FORM_BYTES_MAX = 256 * 1024

export function resultRoutes(app: GatewayApp, { ports, metrics, log }: ThreeDsDeps): void {
  app.register(async scope => {
    // EMV 3-D Secure answers an unreadable message with an Erro message; the HTTP status only says that the message
    // arrived.
    scope.setErrorHandler((error, request, reply) => {
      return isOfRequest(error) ? reply.code(200).send(erro('101', 'unknown')) : handleError(log)(error, request, reply)
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
    // A form of any media type: returnText reads it.
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit: FORM_BYTES_MAX }, (_request, body, done) =>
      done(null, body),
    )
    // A cardholder sees what is answered here, so it is a page.
    scope.setErrorHandler((error, request, reply) => {
      if (isOfRequest(error)) return show(reply, 400, strandedPage())
      // What this process needs is away: the page can come back with the same message.
      logFailure(log, error, request)
      return show(reply, 503, waitingPage(RETURN, returnText(request.body), NO_LOOKUP))
    })
    scope.route({
      method: 'POST',
      url: RETURN,
      config: FOREIGN,
      // The page is shown in a frame of the shop's page.
      helmet: { contentSecurityPolicy: false, frameguard: false },
      schema: { hide: true },
      handler: async ({ body }, reply) => {
        const { status, page, ended } = await answerReturn(ports, body)
        if (ended) metrics.ended.inc({ outcome: ended.state })
        return show(reply, status, page)
      },
    })
  })
}

function isOfRequest(error: unknown): boolean {
  const { statusCode = 500 } = error as { statusCode?: number }
  return error instanceof Declined || statusCode < 500
}

/** What the cardholder sees who comes back with this form. */
export async function answerReturn(
  ports: Ports,
  form: unknown,
): Promise<{ status: 200 | 400; page: Page; ended?: Authentication }> {
  const text = returnText(form)
  const returned = await receiveReturn(ports, text)
  if (isProblem(returned) && returned.problem === 409) return { status: 200, page: waitingPage(RETURN, text) }
  const contract = isProblem(returned) ? undefined : await ports.contracts.find(returned.record.contractId)
  if (isProblem(returned) || !contract) return { status: 400, page: strandedPage() }
  const { record, jwt, ended } = returned
  const page = backPage(contract.requestorUrl, { authenticationId: record.authenticationId, jwt })
  return { status: 200, page, ...(ended ? { ended: record } : {}) }
}

function show<R extends Reply>(reply: R, status: number, page: Page): R {
  const nonce = randomBytes(16).toString('base64')
  reply.code(status)
  reply.type('text/html; charset=utf-8')
  reply.header('content-security-policy', pagePolicy(nonce, page.shop))
  return sendAny(reply, page.html(nonce))
}

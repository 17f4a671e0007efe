// A simulated directory server with its access control servers, to rehearse EMV 3-D Secure 2.1 to 2.3.1: messages over
// HTTP, with the outcome decided by the test card. A transaction id names one authentication, however often it is
// requested. All state is in memory.
import { randomBytes, randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { CODE, type End, scriptOf, TRIES } from './cards.ts'
import { aresOf, malformedAres, rreqOf, type Transaction } from './messages.ts'
import { challengePage, messagePage, pagePolicy, returnPage } from './page.ts'
import { errorFor, readAreq, type SimulatedAreq } from './request.ts'

export interface ThreeDsSimulator {
  /** The URL of the directory server, for a contract's setting. */
  url: string
  port: number
  /** What the server has seen of a transaction: its requests, and how its challenge ended. */
  seen(threeDSServerTransID: string): { requests: number; results: number; ended: string | undefined }
  close(): Promise<void>
}

interface ThreeDsSimulatorOptions {
  host: string
  /** 0: any free port. */
  port: number
  /** The URL at which browsers reach the server; default: made of host and port. */
  publicUrl?: string
}

const TRANSACTIONS_MAX = 10_000
const RESULT_MS_MAX = 5_000

export async function startThreeDsSimulator(options: ThreeDsSimulatorOptions): Promise<ThreeDsSimulator> {
  const app = fastify({ logger: false, bodyLimit: 64 * 1024, forceCloseConnections: true })
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  )
  const transactions = new Map<string, Transaction>()
  let base = ''
  const close = new AbortController()
  addDirectory(app, transactions, () => base)
  addChallenge(app, transactions, { base: () => base, closing: close.signal })
  await app.listen({ host: options.host, port: options.port })
  const { port } = app.server.address() as AddressInfo
  base = options.publicUrl?.replace(/\/$/, '') ?? `http://${options.host}:${port}`
  return {
    url: `${base}/ds`,
    port,
    seen: id => {
      const found = transactions.get(id)
      return { requests: found?.requests ?? 0, results: found?.results ?? 0, ended: found?.ended }
    },
    close: async () => {
      close.abort()
      await app.close()
    },
  }
}

function addDirectory(app: FastifyInstance, transactions: Map<string, Transaction>, base: () => string): void {
  app.post('/ds', async (request, reply) => {
    const areq = readAreq(request.body)
    if ('error' in areq) return errorFor(request.body, areq.error, areq.detail)
    const known = transactions.get(areq.threeDSServerTransID)
    const transaction = known ?? begin(areq)
    transactions.set(areq.threeDSServerTransID, transaction)
    for (const [oldest] of transactions) {
      if (transactions.size <= TRANSACTIONS_MAX) break
      transactions.delete(oldest)
    }
    transaction.requests += 1
    const { script } = transaction
    switch (script.kind) {
      case 'answer':
        return aresOf(transaction, script.status, base())
      case 'challenge':
        return aresOf(transaction, 'C', base())
      case 'silence':
        if (transaction.requests > 1) return aresOf(transaction, 'Y', base())
        // No answer: the connection stays open until the caller gives up or the server closes.
        reply.hijack()
        return reply
      case 'malformed':
        return malformedAres(transaction)
      case 'error':
        return errorFor(areq, script.code, script.description)
    }
  })
}

function begin(areq: SimulatedAreq): Transaction {
  return {
    areq,
    script: scriptOf(areq.acctNumber, areq.cardholderName),
    acsTransID: randomUUID(),
    dsTransID: randomUUID(),
    requests: 0,
    results: 0,
    wrongCodes: 0,
    ended: undefined,
    sessionData: undefined,
  }
}

function addChallenge(
  app: FastifyInstance,
  transactions: Map<string, Transaction>,
  { base, closing }: { base: () => string; closing: AbortSignal },
): void {
  const find = (id: unknown) => [...transactions.values()].find(({ acsTransID }) => acsTransID === id)

  app.post('/acs', async (request, reply) => {
    const { creq, threeDSSessionData } = (request.body ?? {}) as Record<string, string>
    const message = readCreq(creq ?? '')
    const transaction = find(message?.acsTransID)
    const isKnown = transaction?.areq.threeDSServerTransID === message?.threeDSServerTransID
    if (!transaction || !isKnown || transaction.script.kind !== 'challenge' || transaction.ended !== undefined)
      return show(reply, 400, nonce => messagePage('This payment is not waiting for you, or no longer.', nonce))
    transaction.sessionData = threeDSSessionData
    return show(reply, 200, nonce => challengePage(pageOf(transaction, base()), nonce))
  })

  app.post<{ Params: { id: string } }>('/acs/:id', async (request, reply) => {
    const transaction = find(request.params.id)
    if (transaction?.script.kind !== 'challenge')
      return show(reply, 400, nonce => messagePage('This payment is not waiting for you.', nonce))
    // The page was submitted twice, or the browser went back: the browser is returned again, and the result is not sent
    // again.
    if (transaction.ended !== undefined) return giveBack(reply, transaction)
    const { code = '', do: wanted } = (request.body ?? {}) as Record<string, string>
    const { end } = transaction.script
    if (wanted === 'cancel') return finish(reply, transaction, { status: 'N', cancel: '01' }, closing)
    if (end !== 'Y')
      return finish(reply, transaction, { status: end, ...(end === 'U' ? { cancel: '04' } : {}) }, closing)
    if (code.trim() === CODE) return finish(reply, transaction, { status: 'Y' }, closing)
    transaction.wrongCodes += 1
    if (transaction.wrongCodes >= TRIES) return finish(reply, transaction, { status: 'N' }, closing)
    const error = 'This is not the code. Please enter it again.'
    return show(reply, 200, nonce => challengePage({ ...pageOf(transaction, base()), error }, nonce))
  })
}

type Creq = { [name in 'messageType' | 'acsTransID' | 'threeDSServerTransID']?: unknown }

function readCreq(text: string): Creq | undefined {
  try {
    const message = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Creq | null
    return message?.messageType === 'CReq' ? message : undefined
  } catch {
    return undefined
  }
}

function pageOf({ areq, acsTransID }: Transaction, base: string) {
  return {
    action: `${base}/acs/${acsTransID}`,
    merchant: areq.merchantName,
    amount: areq.shownAmount,
    lastFour: areq.acctNumber.slice(-4),
    code: CODE,
  }
}

/** Ends a challenge. The result (RReq) is sent to the 3DS Server before the browser is returned. */
async function finish(
  reply: FastifyReply,
  transaction: Transaction,
  end: { status: End; cancel?: string },
  closing: AbortSignal,
): Promise<FastifyReply> {
  const { areq } = transaction
  transaction.ended = end.status
  const rreq = rreqOf(transaction, end)
  await fetch(areq.threeDSServerURL, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rreq),
    signal: AbortSignal.any([AbortSignal.timeout(RESULT_MS_MAX), closing]),
  }).then(
    async answer => {
      const message = (await answer.json().catch(() => undefined)) as { messageType?: unknown } | undefined
      if (message?.messageType === 'RRes') transaction.results += 1
    },
    () => undefined,
  )
  return giveBack(reply, transaction)
}

function giveBack(reply: FastifyReply, transaction: Transaction): FastifyReply {
  const { areq, acsTransID, ended, sessionData } = transaction
  const cres = {
    messageType: 'CRes',
    messageVersion: areq.messageVersion,
    threeDSServerTransID: areq.threeDSServerTransID,
    acsTransID,
    // In a final CRes transStatus is only Y or N.
    transStatus: ended === 'Y' ? 'Y' : 'N',
  }
  const fields = {
    cres: Buffer.from(JSON.stringify(cres)).toString('base64url'),
    ...(sessionData === undefined ? {} : { threeDSSessionData: sessionData }),
  }
  return show(reply, 200, nonce => returnPage(areq.notificationURL, fields, nonce))
}

function show(reply: FastifyReply, status: number, page: (nonce: string) => string): FastifyReply {
  const nonce = randomBytes(16).toString('base64')
  return reply
    .status(status)
    .type('text/html; charset=utf-8')
    .header('cache-control', 'no-store')
    .header('content-security-policy', pagePolicy(nonce))
    .header('referrer-policy', 'no-referrer')
    .send(page(nonce))
}

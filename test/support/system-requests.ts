// Acts as a system client for a test: signs on a client's behalf, puts the job into its queue, and takes the answer off
// the system client's results queue.
import { randomUUID } from 'node:crypto'
import { readSystemKey } from '../../cli/open/system-clients.ts'
import { openInbox } from '../../producers/results.ts'
import type { Result } from '../../src/job/answer/result.ts'
import type { Kind } from '../../src/job/composition.ts'
import { envelopeDigest } from '../../src/job/envelope/digest.ts'
import { Claims, sign } from '../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../src/job/envelope/ids.ts'
import type { SystemClient } from '../../src/job/system-clients.ts'
import { openLog } from '../../src/log.ts'
import type { Installation } from './installation.ts'
import { until } from './until.ts'

export interface Sent {
  jti: string
  receiptId: string
  /** The envelope's digest, as a reversal names it. */
  envelope: string
}

export interface SystemDesk {
  /** Signs without sending. */
  sign(
    kind: Kind,
    request: Record<string, unknown>,
    options?: { jti?: string; now?: number },
  ): Sent & { jws: string; post(): Promise<void> }
  send(kind: Kind, request: Record<string, unknown>, options?: { jti?: string; now?: number }): Promise<Sent>
  /** Waits for the answer that follows the first `after` answers. */
  answer(sent: Sent, after?: number): Promise<Result>
  ask(kind: Kind, request: Record<string, unknown>, options?: { jti?: string }): Promise<Result>
  /** Reverses the job. Returns the `reversal_status` of the answer. */
  reverse(sent: Sent): Promise<unknown>
  close(): Promise<void>
}

export async function openSystemDesk(
  installation: Installation,
  name: SystemClient,
  replyTo = `t${randomUUID().slice(0, 8)}`,
): Promise<SystemDesk> {
  const { queues, credentials, dataDir } = installation
  const signingKey = await readSystemKey(dataDir, name)
  const found = new Map<string, Result[]>()
  const inbox = openInbox(
    queues,
    { clientId: name, replyTo, keys: credentials.installationKeys },
    async delivery => {
      if (delivery.type === 'result')
        found.set(delivery.receipt_id, [...(found.get(delivery.receipt_id) ?? []), delivery])
      return 'taken'
    },
    { concurrency: 10, log: openLog('silent') },
  )
  const { clientId } = credentials.signingKey
  const desk: SystemDesk = {
    sign(kind, request, { jti = randomUUID(), now = Date.now() } = {}) {
      const iat = Math.floor(now / 1000)
      const claims = Claims.parse({
        iss: name,
        client_id: clientId,
        aud: credentials.audience,
        sub: credentials.userId,
        entity_id: credentials.entityId,
        roles: ['TOKEN_WRITE', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN'],
        iat,
        exp: iat + 600,
        jti,
        kind,
        request,
        reply_to: replyTo,
      })
      const jws = sign(claims, signingKey)
      return {
        jws,
        jti,
        receiptId: receiptId(clientId, jti),
        envelope: envelopeDigest(jws).toString('base64url'),
        post: () => queues.add(kind, { id: jobId(clientId, jti), data: { jws } }),
      }
    },
    async send(kind, request, options) {
      const signed = desk.sign(kind, request, options)
      await signed.post()
      return signed
    },
    answer: ({ receiptId: id, jti }, after = 0) => until(() => found.get(id)?.[after], { what: `an answer to ${jti}` }),
    async ask(kind, request, options) {
      return desk.answer(await desk.send(kind, request, options))
    },
    async reverse({ receiptId: receipt_id, envelope }) {
      const result = await desk.ask('reversal', { receipt_id, envelope })
      return result.record?.['reversal_status'] ?? result
    },
    close: () => inbox.close(2_000),
  }
  await inbox.ready
  return desk
}

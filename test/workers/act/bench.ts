// What the tests of acts share: a console that signs acts as the real one does, people with passkeys, and a batch.
import { randomBytes, randomUUID } from 'node:crypto'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { openInbox } from '../../../producers/results.ts'
import { invitePerson } from '../../../src/acts/person.ts'
import { checkPersonProof } from '../../../src/acts/person-proof.ts'
import { checkProof } from '../../../src/audit/proof.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { Claims, sign } from '../../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../../src/job/envelope/ids.ts'
import type { Act, Enrolment } from '../../../src/job/system/act.ts'
import { openLog } from '../../../src/log.ts'
import { AUDIT_COLUMNS, type AuditRow } from '../../../src/store/access/audits.ts'
import type { Batch } from '../../../src/store/batch/batch-row.ts'
import { seenOf } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import type { PersonRole } from '../../../src/store/person/persons.ts'
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import type { Engine } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type Authenticator, type Oddity, openAuthenticator, type Site } from '../../vault/passkey/authenticator.ts'
import { signEnrolment } from './invite.ts'

export const SITE = { origin: 'https://console.example.com', rpId: 'console.example.com' }
const NO_ENTITY = '00000000-0000-0000-0000-000000000000'

export type Unproved = Omit<Act, 'proof'>

export interface Member {
  personId: string
  authenticator: Authenticator
}

export interface ActBench {
  /** Sends a request as the console. Returns `DONE`, or the word of the refusal. */
  send(request: Act, jti?: string): Promise<string>
  /** As `send`; returns the whole answer. */
  ask(request: Act, jti?: string): Promise<Result>
  /** The request of an act on a batch, as the person sees the batch now. */
  about(member: Pick<Member, 'personId'>, act: Act['act'], batch: Batch, odd?: Partial<Unproved>): Promise<Unproved>
  /** The request of an act on anything. */
  on(
    member: Pick<Member, 'personId'>,
    act: Pick<Unproved, 'act' | 'subject' | 'parameters' | 'seen'>,
    odd?: Partial<Unproved>,
  ): Unproved
  /** Signs the request with the person's passkey. */
  touch(member: Member, request: Unproved, odd?: Oddity): Act
  /** Invites a person and enrols a passkey. */
  join(name: string, roles: PersonRole[], entities?: string[] | null): Promise<Member>
  invite(
    name: string,
    roles: PersonRole[],
    entities?: string[] | null,
  ): Promise<{ inviteId: string; secret: string; personId: string | null }>
  /** The request by which an invite is used. */
  enrolment(invite: { inviteId: string }, personId: string): Unproved
  /** Makes a passkey for the request, and signs it with the key in the invite. */
  enrol(secret: string, authenticator: Authenticator, request: Unproved, odd?: Oddity): Act & { proof: Enrolment }
  /** The job of a request, as it is in the queue. */
  jobOf(request: Act, jti: string): { jws: string }
  /** What is said against the proofs of rows, each with its act; how many are right, by act. */
  proofs(): Promise<{ wrong: string[]; right: Record<string, number> }>
  batch(entityId?: string | null): Promise<Batch>
  find(batch: Batch): Promise<Batch>
  close(): Promise<void>
}

/** An installation whose workers take acts of people at `SITE`. */
export async function openActInstallation(engine: Engine): Promise<Installation> {
  const settings = { TOKENMILL_CONSOLE_ORIGIN: SITE.origin, TOKENMILL_LOG_LEVEL: 'silent' }
  const installation = await openInstallation(engine, settings)
  await installation.openWorkers({ roles: ['interactive'] })
  return installation
}

/** `site`: where passkeys are made; the origin of the console that the workers know. */
export async function openActBench(installation: Installation, site: Site = SITE): Promise<ActBench> {
  const { queues, credentials, dataDir, vault } = installation
  const { store, installationId } = vault
  const signingKey = await readSystemKey(dataDir, 'console')
  const replyTo = `t${randomUUID().slice(0, 8)}`
  const found = new Map<string, Result[]>()
  const inbox = openInbox(
    queues,
    { clientId: 'console', replyTo, keys: credentials.installationKeys },
    async delivery => {
      if (delivery.type === 'result')
        found.set(delivery.receipt_id, [...(found.get(delivery.receipt_id) ?? []), delivery])
      return 'taken'
    },
    { concurrency: 4, log: openLog('silent') },
  )
  await inbox.ready
  const expiresAt = () => Math.floor(Date.now() / 1000) + 100
  const nonce = () => randomBytes(16).toString('base64url')
  const claimsOf = (request: Act, jti: string) => {
    const iat = Math.floor(Date.now() / 1000)
    return Claims.parse({
      iss: 'console',
      aud: credentials.audience,
      sub: request.person_id,
      entity_id: NO_ENTITY,
      roles: [],
      iat,
      exp: iat + 120,
      jti,
      kind: 'act',
      request,
      reply_to: replyTo,
    })
  }
  const bench: ActBench = {
    jobOf: (request, jti) => ({ jws: sign(claimsOf(request, jti), signingKey) }),
    async ask(request, jti = randomUUID()) {
      const claims = claimsOf(request, jti)
      const id = receiptId('console', jti)
      const before = found.get(id)?.length ?? 0
      // The queue ignores a job while it still holds one of this id, which is for a moment after the answer.
      await until(async () => !(await queues.has('act', jobId('console', jti))))
      await queues.add('act', { id: jobId('console', jti), data: { jws: sign(claims, signingKey) } })
      return until(() => found.get(id)?.[before], { what: `an answer to ${request.act}` })
    },
    async send(request, jti) {
      const { status, error } = await bench.ask(request, jti)
      return status === 'SUCCEEDED' ? 'DONE' : (Object.values(error?.details ?? {})[0]?.code ?? 'no reason')
    },
    on: ({ personId }, act, odd = {}) => ({
      ...act,
      reason: 'a test',
      person_id: personId,
      nonce: nonce(),
      expires_at: expiresAt(),
      ...odd,
    }),
    async about(member, act, batch, odd = {}) {
      const { batchId: subject, clientId } = batch
      const parameters = { client_id: clientId }
      return bench.on(member, { act, subject, parameters, seen: seenOf(await bench.find(batch)) }, odd)
    },
    touch({ authenticator }, request, odd) {
      return { ...request, proof: authenticator.get(challengeOf(request, installationId), odd) }
    },
    async invite(name, roles, entities = null) {
      const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
      const ended = await invitePerson({ ...vault, rpId: site.rpId }, { name, roles, entities }, by, Date.now())
      if ('refused' in ended) throw new Error(ended.refused)
      return ended.done
    },
    enrolment: ({ inviteId }, personId) => ({
      act: 'person.enrol',
      subject: inviteId,
      parameters: {},
      seen: null,
      reason: null,
      person_id: personId,
      nonce: nonce(),
      expires_at: expiresAt(),
    }),
    enrol(secret, authenticator, request, odd) {
      const challenge = challengeOf(request, installationId)
      return { ...request, proof: signEnrolment(secret, challenge, authenticator.create(challenge, odd)) }
    },
    async join(name, roles, entities) {
      const invite = await bench.invite(name, roles, entities)
      const personId = invite.personId ?? randomUUID()
      const authenticator = openAuthenticator(site)
      const request = bench.enrolment(invite, personId)
      const said = await bench.send(bench.enrol(invite.secret, authenticator, request))
      if (said !== 'DONE') throw new Error(said)
      return { personId, authenticator }
    },
    async proofs() {
      const { rows } = await store.query<AuditRow>({
        text: `select ${AUDIT_COLUMNS} from tokenmill.audit where actor like 'person:%' and detail ? 'proof'`,
      })
      const wrong: string[] = []
      const right: Record<string, number> = {}
      for (const row of rows) {
        const verdict = await checkProof(store, row, checkPersonProof)
        if (verdict.proof === 'right' && !verdict.others) right[row.action] = (right[row.action] ?? 0) + 1
        else wrong.push(`${row.action} ${row.outcome}: ${JSON.stringify(verdict)}`)
      }
      return { wrong, right }
    },
    async batch(entityId = null) {
      return batches.open(store, {
        clientId: credentials.signingKey.clientId,
        batchId: `batch-${randomUUID()}`,
        recordKind: 'token-create',
        entityId,
        tokenScope: installation.scope,
        chunkRecords: 10,
        layout: {},
        acceptedAt: Date.now(),
        extent: { chunks: 5, rows: 50, name: null, sha256: null },
      })
    },
    async find({ clientId, batchId }) {
      const batch = await batches.find(store, clientId, batchId)
      if (!batch) throw new Error('no such batch')
      return batch
    },
    close: () => inbox.close(2_000),
  }
  return bench
}

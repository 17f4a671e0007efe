// What a sender may not ask for alone it may not ask for in a chunk either: a chunk with such a record is refused as a
// whole, in every form and also as a dry run, a repeat or a retry, and nothing of it is stored.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RecordKind, Role } from '../../../src/job/catalogue.ts'
import { KINDS } from '../../../src/job/composition.ts'
import { rolesOf } from '../../../src/job/envelope/roles.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import { describeStore } from '../../support/engines.ts'
import { grantAll } from '../../support/grant-all.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type OnFileWorld, openOnFile, owner, record } from '../on-file-bundle.ts'
import type { Job } from '../provider/bundle.ts'

const ALL: readonly Role[] = ['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN']
const WRITER: readonly Role[] = ['TOKEN_WRITE']
const without = (role: Role) => ALL.filter(one => one !== role)

describeStore('a request that needs a role', engine => {
  let installation: Installation
  let onFile: OnFileWorld
  let pans = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    onFile = await openOnFile(installation)
  })
  afterAll(() => installation?.close())

  const nextPan = () => {
    pans += 1
    return pans
  }
  const token = async () => String((await onFile.create(nextPan())).record?.['reuse_token'])
  const provisioned = async () => {
    const id = await token()
    await onFile.world.ask('scheme-token', { id, action: 'ACTIVATE' })
    return id
  }
  const told = async (job: Job) => {
    const { code, error, record: made, records } = await onFile.world.run(job)
    const details = Object.entries((error?.details ?? {}) as Record<string, { code: string }>)
    const refused = details.map(([field, { code: reason }]) => `${field} ${reason}`)
    const outcomes = (records as { outcome: string }[] | undefined)?.map(({ outcome }) => outcome)
    return { code, refused, outcomes, made }
  }
  const leftOf = async ({ receiptId }: Job, batchId: string) => {
    const { store } = installation.vault
    const { clientId } = installation.credentials.signingKey
    return [await receipts.find(store, receiptId), await batches.find(store, clientId, batchId)]
  }

  describe('is refused without it', () => {
    it('as a single job, whoever signs it, and in a set of jobs', async () => {
      const id = await provisioned()
      const request = { id, scheme_token_action: 'DELETE' }
      const calls = onFile.world.network.calls.length
      const jobs = [
        ...[false, true].map(bySystem => onFile.world.job('token-update', request, { roles: WRITER, bySystem })),
        onFile.world.job('scheme-token', { id, action: 'DELETE' }, { roles: without('SCHEME_TOKEN') }),
        onFile.world.job('token-lifecycle', { id, action: 'DELETE' }, { roles: without('TOKEN_LIFECYCLE') }),
      ]
      for (const end of await Promise.all(jobs.map(told)))
        expect(end).toMatchObject({ code: 403, refused: ['body.roles role_missing'] })
      expect(onFile.world.network.calls).toHaveLength(calls)
    })

    it.each([
      ['a chunk', {}],
      ['a dry run', { dryRun: true }],
    ])('in %s, whole, by its lines, and leaves nothing', async (_, more) => {
      const [id, other] = [await provisioned(), await token()]
      const calls = onFile.world.network.calls.length
      const batchId = `f-${randomUUID()}`
      const requests = [
        { id: other, card_holder_name: 'BERTA' },
        { id, scheme_token_action: 'DELETE' },
        { id: other, card_holder_name: 'CLARA' },
        {
          id,
          card: { cardNumber: testPan(nextPan()), expiryMonth: 1, expiryYear: 2033 },
          scheme_token_action: 'NEVER',
        },
      ]
      const options = { recordKind: 'token-update', batchId, line: 7, ...more } as const
      const job = await onFile.chunkJob(requests, { ...options, roles: without('SCHEME_TOKEN') })
      const lines = [8, 10].map(line => `body.lines.${line}.scheme_token_action role_missing`)
      expect(await told(job)).toMatchObject({ code: 403, refused: lines })
      expect(await leftOf(job, batchId)).toEqual([undefined, undefined])
      expect(onFile.world.network.calls).toHaveLength(calls)
      expect((await onFile.token(other))?.cardHolderName).toBeNull()
      const allowed = await told(await onFile.chunkJob(requests.slice(0, 3), { ...options, roles: ALL }))
      expect(allowed).toMatchObject({ code: 200, refused: [] })
    })

    it('where the client itself has lost the role, also as a retry and as a repeat of what was done', async () => {
      const [id, next] = [await provisioned(), await provisioned()]
      const options = { recordKind: 'token-update', batchId: `f-${randomUUID()}` } as const
      const done = await onFile.chunkJob([{ id, scheme_token_action: 'SUSPEND' }], options)
      expect(await told(done)).toMatchObject({ outcomes: ['UPDATED'] })
      const single = onFile.world.job('token-update', { id: next, scheme_token_action: 'SUSPEND' })
      expect(await told(single)).toMatchObject({ code: 200 })
      await roles(WRITER)
      try {
        const anew = await onFile.chunkJob([{ id: next, scheme_token_action: 'DELETE' }], {
          recordKind: 'token-update',
        })
        const ends = [await told(done), await told({ ...anew, attempt: 3 })]
        for (const end of ends)
          expect(end).toMatchObject({ code: 403, refused: ['body.lines.1.scheme_token_action role_missing'] })
        expect(await told(single)).toMatchObject({ code: 403, refused: ['body.roles role_missing'] })
      } finally {
        await roles(ALL)
      }
      expect(await told(done)).toMatchObject({ outcomes: ['UPDATED'] })
    })
  })

  const roles = async (given: readonly Role[]) => {
    const { vault, credentials } = installation
    await vault.store.query({
      text: 'update tokenmill.client set roles = $2 where client_id = $1',
      values: [credentials.signingKey.clientId, given],
    })
    await grantAll(vault.store, vault.ring)
    onFile = await openOnFile(installation, installation.scope)
  }

  it('is decided by its content alone, in each way and with each set of roles', async () => {
    const own = () => owner(randomUUID().slice(0, 8))
    const cases: [RecordKind, () => Promise<Record<string, unknown>>, Record<string, unknown>?][] = [
      ['token-create', async () => record(nextPan())],
      ['token-create', async () => record(nextPan(), own()), { on_orphan: 'suspend' }],
      ['token-update', async () => ({ id: await token(), card_holder_name: 'DORA' })],
      ['token-update', async () => ({ id: await token(), on_file: own() }), { on_orphan: 'delete' }],
      ['token-update', async () => ({ id: await token(), scheme_token_action: 'ACTIVATE' })],
      ['token-lifecycle', async () => ({ id: await token(), action: 'SUSPEND' })],
      ['scheme-token', async () => ({ id: await token(), action: 'ACTIVATE' })],
    ]
    for (const [recordKind, make, policy] of cases)
      for (const dryRun of [false, true])
        for (const held of [ALL, ...ALL.map(without)]) {
          const request = await make()
          const options = { recordKind, dryRun, roles: held, ...(policy ? { policy } : {}) }
          const needed = [
            ...rolesOf(KINDS['token-batch'], { record_kind: recordKind, dry_run: dryRun, policy }),
            ...rolesOf(KINDS[recordKind], request),
          ]
          const { code } = await told(await onFile.chunkJob([request], options))
          const what = `${recordKind} ${Object.keys(request)} ${JSON.stringify(policy)} ${dryRun} ${held}`
          expect([what, code]).toEqual([what, needed.every(role => held.includes(role)) ? 200 : 403])
        }
  })
})

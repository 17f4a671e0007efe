// Repeats of jobs while the key of request digests is replaced: each is answered from its receipt, whatever version its
// worker knows, and is never taken for another request.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { requestText } from '../../../src/job/envelope/digest.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import { pageOf } from '../../../src/metrics.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { turnKey } from '../reseal/turn-key.ts'

const REQUEST = { id: 't01jd3x8z7q2m4n6p8r0s2t4v6w', action: 'SUSPEND' } as const

describeOnRedis('a repeat', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const clientId = () => installation.credentials.signingKey.clientId
  const stored = (jti: string) => receipts.find(installation.vault.store, receiptId(clientId(), jti))

  /** Signs and sends the job. Returns the code and the revision of its answer. */
  async function send(jti: string, body: Record<string, unknown> = REQUEST): Promise<string> {
    const client = await installation.connect({ replyTo: `r${randomUUID().slice(0, 8)}` })
    const { code, revision } = await client.call('token-lifecycle', body, { jti })
    await client.close()
    return `${code} revision ${revision}`
  }

  it('is compared under the version that its receipt names, by workers that came before and after the turn', async () => {
    const old = await installation.openWorkers({ roles: ['interactive'] })
    expect(await send('before')).toBe('404 revision 1')
    expect(await stored('before')).toMatchObject({ digestVersion: 1 })
    const turned = await turnKey(installation.vault, 'digest')

    // Another host, which knows the version already, has worked a job.
    expect(await send('by-another')).toBe('404 revision 1')
    const { hash } = turned.ring.requestDigest(requestText('token-lifecycle', REQUEST))
    await installation.vault.store.query({
      text: 'update tokenmill.receipt set request_digest = $2, digest_version = $3 where receipt_id = $1',
      values: [receiptId(clientId(), 'by-another'), hash, turned.version],
    })
    // The older worker reads its keys again during this attempt.
    expect(await send('by-another')).toBe('404 revision 1')
    const page = await pageOf(await old.snapshots())
    expect(page.split('\n').filter(line => line.includes('_retries_total{') && !line.endsWith(' 0'))).toEqual([])
    expect(await send('by-another', { ...REQUEST, action: 'ACTIVATE' })).toBe('400 revision 0')
    await old.close()

    const late = await installation.openWorkers({ roles: ['interactive'] })
    expect(await send('before')).toBe('404 revision 1')
    expect(await send('before', { ...REQUEST, action: 'ACTIVATE' })).toBe('400 revision 0')
    expect(await send('after')).toBe('404 revision 1')
    expect(await stored('before')).toMatchObject({ digestVersion: 1 })
    expect(await stored('after')).toMatchObject({ digestVersion: turned.version })
    expect(await send('after')).toBe('404 revision 1')
    await late.close()
  })
})

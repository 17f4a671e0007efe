// Whose batch it is: of the entity that began it, as long as every chunk is of the same one, or of the entity of its scope. People
// for some entities see no other batches.
import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { registerClient } from '../../../cli/open/register-client.ts'
import { readCredentials } from '../../../producers/client/client-file.ts'
import { isRefusal } from '../../../src/errors.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { joinBatch } from '../../../workers/chunk/batch.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { openOnFile, record } from '../on-file-bundle.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

describeStore('the entity of a batch', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const batchOf = (batchId: string) => ({
    clientId: installation.credentials.signingKey.clientId,
    batchId,
    recordKind: 'transaction' as const,
    tokenScope: null,
    chunkRecords: 10,
    layout: {},
    acceptedAt: Date.now(),
  })
  const joined = async (batchId: string, entityId: string, chunk = 0) => {
    const said = await joinBatch(installation.vault.store, { ...batchOf(batchId), entityId }, { chunk })
    return isRefusal(said) ? said.reason : 'JOINED'
  }
  const kept = async (batchId: string) =>
    (await batches.find(installation.vault.store, batchOf(batchId).clientId, batchId))?.entityId

  const clientOfBoth = async () => {
    const outDir = join(installation.dataDir, 'both')
    await mkdir(outDir)
    const file = await registerClient(installation.vault, {
      name: 'both',
      entities: [ENTITY, OTHER],
      roles: ['TOKEN_WRITE'],
      publicJwk: undefined,
      names: undefined,
      outDir,
      audience: installation.session.config.audience,
      baseUrl: 'http://127.0.0.1:8080/oidc',
    })
    await writeFile(join(outDir, 'client.json'), JSON.stringify({ ...file, token_scope: installation.scope }))
    return readCredentials(join(outDir, 'client.json'))
  }

  it('is that of its first chunk, and of every other one', async () => {
    const id = randomUUID()
    for (const chunk of [0, 1, 2]) expect(await joined(id, ENTITY, chunk)).toBe('JOINED')
    expect(await kept(id)).toBe(ENTITY)
  })

  it('is unknown as soon as a chunk is of another one, and stays so', async () => {
    const id = randomUUID()
    expect([await joined(id, ENTITY), await joined(id, OTHER, 1)]).toEqual(['JOINED', 'JOINED'])
    expect(await kept(id)).toBeNull()
    expect(await joined(id, ENTITY, 2)).toBe('JOINED')
    expect(await kept(id)).toBeNull()
  })

  it('is unknown if chunks of two came at once', async () => {
    for (let n = 0; n < 10; n += 1) {
      const id = randomUUID()
      await Promise.all([ENTITY, OTHER, ENTITY].map((entity, chunk) => joined(id, entity, chunk)))
      expect(await kept(id)).toBeNull()
    }
  })

  it('is that of the scope that the batch names, whatever its chunks claim', async () => {
    const credentials = await clientOfBoth()
    const batchId = `f-${randomUUID()}`
    for (const [number, entityId] of [OTHER, ENTITY, OTHER].entries()) {
      const onFile = await openOnFile({ ...installation, credentials: { ...credentials, entityId } })
      expect(await onFile.chunk([record(number)], { batchId, number })).toMatchObject([{ outcome: 'CREATED' }])
    }
    const batch = await batches.find(installation.vault.store, credentials.signingKey.clientId, batchId)
    expect(batch?.entityId).toBe(ENTITY)
  })
})

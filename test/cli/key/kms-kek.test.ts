// A key-encryption key in AWS KMS under two running worker processes: from a file into KMS, through a time in which KMS
// is away, and back into the file, without a restart or a failed job.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ACCOUNT, type KmsSimulator, startKmsSimulator } from '../../../src/simulate/kms/kms.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { parseKmsUri } from '../../../src/vault/kms/uri.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { confirmationIn, openTwoOperators } from './two-operators.ts'

const URI = `aws-kms://arn:aws:kms:eu-central-1:${ACCOUNT}:key/00000000-0000-4000-8000-000000000001`
const THROTTLED = { status: 400, type: 'ThrottlingException', message: 'Rate exceeded' }
const DISABLED = { status: 400, type: 'DisabledException', message: 'the key is disabled.' }

const QUICK_WORKER = fileURLToPath(new URL('./quick-worker.ts', import.meta.url))

describeOnRedis('a key-encryption key in KMS', engine => {
  let kms: KmsSimulator
  let installation: Installation
  let env: Record<string, string>
  let client: Awaited<ReturnType<Installation['connect']>>
  let inFile: string
  const inKms = parseKmsUri(URI).id
  beforeAll(async () => {
    kms = await startKmsSimulator()
    installation = await openInstallation(engine)
    inFile = installation.vault.keks.current.id
    const list = join(installation.dataDir, 'keks')
    await writeFile(list, `file:${join(installation.dataDir, 'kek')}\n${URI}\n`, { mode: 0o600 })
    env = {
      ...(installation.env as Record<string, string>),
      TOKENMILL_KEK: list,
      TOKENMILL_KEK_FILE: '',
      ...kms.env,
    }
    await installation.startWorkers({ script: QUICK_WORKER, env })
    client = await installation.connect()
  })
  afterAll(async () => {
    await installation?.close()
    await kms?.close()
  })

  const live = async () => (await processes.list(installation.vault.store)).map(({ processId }) => processId).sort()
  let cards = 0
  const createTokens = async () => {
    const codes: number[] = []
    for (let index = 0; index < 5; index++) {
      cards += 1
      const card = { cardNumber: testPan(cards), expiryMonth: 12, expiryYear: 2035 }
      const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
      codes.push((await client.call('token-create', request)).code)
    }
    return codes
  }

  it('takes over from a file and gives back, and no job fails while KMS is away', async () => {
    const before = await live()
    expect(before).toHaveLength(2)
    const { signed, others } = await openTwoOperators(installation)
    /** Runs the command in a separate process, whose environment has the credentials. */
    const rotate = async (to: string) => {
      const words = ['key', 'rotate', 'kek', '--to', to, '--json', ...signed]
      const asked = startCommand(words, { env })
      const { code } = await asked.exit
      const id = confirmationIn({ status: code ?? -1, stderr: asked.stderr() })
      const confirmed = startCommand(['key', 'confirm', id, ...others, '--yes'], { env })
      expect(await confirmed.exit).toMatchObject({ code: 0 })
      return startCommand(words, { env })
    }
    const into = await rotate(URI)
    expect(await into.exit).toMatchObject({ code: 0 })
    expect(JSON.parse(into.stdout())).toMatchObject({ kek_id: inKms, former_kek_id: inFile })
    expect(await createTokens()).toEqual(Array(5).fill(200))

    kms.setTrouble(THROTTLED)
    expect(await createTokens()).toEqual(Array(5).fill(200))
    const only = { ...env, TOKENMILL_KEK: URI }
    const starting = startCommand(['workers', '--kinds', 'token-create'], {
      env: { ...only, TOKENMILL_LOG_LEVEL: 'warn' },
    })
    await starting.line(/KMS can not be used now \(ThrottlingException.*waiting for the key/, { stream: 'stderr' })
    kms.setTrouble(undefined)
    await until(async () => (await live()).length === before.length + 1, { what: 'a worker that starts' })
    // The rotation doesn't wait for a process that ends.
    starting.signal('SIGTERM')
    await starting.exit

    kms.setTrouble(DISABLED)
    const refused = startCommand(['key', 'rotate', 'seal'], { env: only })
    expect(await refused.exit).toMatchObject({ code: 78 })
    expect(refused.stderr()).toMatch(/the key is disabled: enable it in KMS \(DisabledException/)
    expect(await createTokens()).toEqual(Array(5).fill(200))
    kms.setTrouble(undefined)

    const back = await rotate(inFile)
    expect(await back.exit).toMatchObject({ code: 0 })
    expect(JSON.parse(back.stdout())).toMatchObject({ kek_id: inFile, former_kek_id: inKms })
    expect(await createTokens()).toEqual(Array(5).fill(200))
    expect((await live()).filter(id => before.includes(id))).toEqual(before)
  })
})

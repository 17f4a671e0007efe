// A key-encryption key in a token under two running worker processes: from a file into the token, through a time in
// which the token is away, and back into the file, without a restart or a failed job.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as processes from '../../../src/store/access/processes.ts'
import { openPkcs11 } from '../../../src/vault/pkcs11/open.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { missingSoftHsm, openSoftHsm, type SoftHsm } from '../../vault/pkcs11/softhsm.ts'
import { cli } from '../command-bench.ts'
import { confirmationIn, openTwoOperators } from './two-operators.ts'

const PIN = '0451-7702'

const QUICK_WORKER = fileURLToPath(new URL('./quick-worker.ts', import.meta.url))

describeOnRedis('a key-encryption key in a token', engine => {
  describe.skipIf(missingSoftHsm().length > 0)('under running workers', () => {
    let hsm: SoftHsm
    let installation: Installation
    let env: Record<string, string>
    let uri: string
    let client: Awaited<ReturnType<Installation['connect']>>
    let inFile: string
    let inToken: string
    beforeAll(async () => {
      hsm = await openSoftHsm()
      hsm.makeToken('cards', PIN, [{ object: 'kek' }])
      uri = `pkcs11:token=cards;object=kek?module-path=${hsm.modulePath}&pin-source=file:${await hsm.pinFile(PIN)}`
      inToken = (await openPkcs11(uri)).id
      installation = await openInstallation(engine)
      inFile = installation.vault.keks.current.id
      const list = join(installation.dataDir, 'keks')
      await writeFile(list, `file:${join(installation.dataDir, 'kek')}\n${uri}\n`, { mode: 0o600 })
      env = {
        ...(installation.env as Record<string, string>),
        TOKENMILL_KEK: list,
        TOKENMILL_KEK_FILE: '',
        SOFTHSM2_CONF: hsm.configPath,
      }
      await installation.startWorkers({ script: QUICK_WORKER, env })
      client = await installation.connect()
    })
    afterAll(async () => {
      await installation?.close()
      await hsm?.close()
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

    it('takes over from a file and gives back, and no job fails while the token is away', async () => {
      const before = await live()
      expect(before).toHaveLength(2)
      const operators = await openTwoOperators(installation)
      const [toToken, toFile] = [uri, inFile].map(to => ['key', 'rotate', 'kek', '--to', to, '--json'])
      if (!toToken || !toFile) throw new Error('there are two')
      await operators.confirm(toToken, env)
      const into = await cli([...toToken, ...operators.signed], { env })
      expect(into.json()).toMatchObject({ kek_id: inToken, former_kek_id: inFile })
      expect(await createTokens()).toEqual(Array(5).fill(200))

      await rename(hsm.tokens, `${hsm.tokens}-away`)
      expect(await createTokens()).toEqual(Array(5).fill(200))
      const starting = startCommand(['workers'], { env: { ...env, TOKENMILL_KEK: uri, TOKENMILL_LOG_LEVEL: 'warn' } })
      await starting.line(/\(the module does not start \(CKR_GENERAL_ERROR\)\) is away, .*waiting for the key/, {
        stream: 'stderr',
      })
      await starting.kill9()
      const status = await cli(['status'], { env: { ...env, TOKENMILL_KEK: uri } })
      expect(status.stdout).toMatch(/vault keys +critical +no process can start: .*the module does not start/)
      await rename(`${hsm.tokens}-away`, hsm.tokens)

      // For a second this process doesn't look for the token again.
      const back = await until(async () => {
        const rotated = await cli([...toFile, ...operators.signed], { env })
        if (rotated.status === 5) {
          await cli(['key', 'confirm', confirmationIn(rotated), ...operators.others, '--yes'], { env })
          return false
        }
        return rotated.status === 0 && rotated
      })
      expect(back.json()).toMatchObject({ kek_id: inFile, former_kek_id: inToken })
      expect(await createTokens()).toEqual(Array(5).fill(200))
      expect(await live()).toEqual(before)
      expect(`${into.stdout}${into.stderr}${back.stdout}${back.stderr}${starting.stderr()}`).not.toContain(PIN)
    })

    it('is waited for by a starting process only as long as the store names it', async () => {
      const { dataDir, vault } = installation
      const list = join(dataDir, 'keks-of-late-host')
      await writeFile(list, `file:${join(dataDir, 'kek')}\n${uri.replace('token=cards', 'token=none')}\n`, {
        mode: 0o600,
      })
      const before = await live()
      const setKek = (kekId: string) =>
        vault.store.query({ text: 'update tokenmill.installation set kek_id = $1', values: [kekId] })
      await setKek('kek-0000000000000000')
      const starting = startCommand(['workers'], { env: { ...env, TOKENMILL_KEK: list, TOKENMILL_LOG_LEVEL: 'warn' } })
      await starting.line(/waiting for the key/, { stream: 'stderr' })
      await setKek(inFile)
      await until(async () => (await live()).length > before.length, { what: 'a worker that starts' })
      await starting.kill9()
    })
  })
})

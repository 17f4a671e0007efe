// The 3-D Secure service in a separate process: its settings and its end.
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../../src/config.ts'
import * as processes from '../../../../src/store/access/processes.ts'
import { startScript } from '../../../support/process.ts'
import { untilReady } from '../../../support/ready.ts'
import { until } from '../../../support/until.ts'
import { CARD, lookupBody } from '../../../three-ds/samples.ts'
import { encrypted, openCalls } from '../bundle.ts'
import { type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

let bundle: HttpBundle
beforeAll(async () => {
  bundle = await openHttpBundle()
})
afterAll(() => bundle?.close())

const start = (env: Record<string, string> = {}) =>
  startScript('cli/main.ts', ['three-ds'], {
    env: { ...(bundle.installation.env as Record<string, string>), TOKENMILL_LOG_LEVEL: 'info', ...env },
  })

describe('tokenmill three-ds', () => {
  it('says in one line that its port is in use, and exits 1', async () => {
    const child = start({ TOKENMILL_THREE_DS_PORT: new URL(bundle.url).port, TOKENMILL_LOG_LEVEL: 'error' })
    expect(await child.exit, child.stderr()).toMatchObject({ code: 1 })
    expect(child.stderr()).toMatch(
      /^tokenmill: TOKENMILL_THREE_DS_PORT: something listens on .* already; end that process, or set another port\n$/,
    )
  })

  it('says in one line what is wrong, and exits 78', async () => {
    const wrong = [
      [{ TOKENMILL_KEK_FILE: join(bundle.installation.dataDir, 'nowhere') }, /^tokenmill: .*nowhere/m],
      [{ TOKENMILL_TLS_CERT: '/nowhere', TOKENMILL_TLS_KEY: '/nowhere' }, /^tokenmill: TOKENMILL_TLS_CERT: /m],
    ] as const
    await Promise.all(
      wrong.map(async ([env, line]) => {
        const child = start({ TOKENMILL_LOG_LEVEL: 'error', ...env })
        expect(await child.exit, child.stderr()).toMatchObject({ code: 78 })
        expect(child.stderr()).toMatch(line)
      }),
    )
  })

  it('needs no queue server, and at its end answers what is in flight', async () => {
    const child = start({ REDIS_URL: 'redis://127.0.0.1:1', TOKENMILL_THREE_DS_TIMEOUT_SECONDS: '2' })
    const [, port] = await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
    const url = `http://127.0.0.1:${port}`
    await untilReady(url)
    const { store, keks } = bundle.installation.vault
    const [{ keys } = { keys: [] }] = await processes.listVault(store, 60_000)
    expect(keys).toEqual(expect.arrayContaining(['seal/1', keks.current.id]))
    const call = await openCalls(url, bundle.authorization)
    const { reuse_token: _, ...fields } = lookupBody(bundle.contract.contractId, CARD.silence)
    const card = { cardNumber: CARD.silence, expiryMonth: 1, expiryYear: 2031 }
    const body = { ...fields, ...(await encrypted(card, bundle.installation.credentials)) }
    const answer = call('POST', `${SERVICE}/lookup`, { body })
    await until(async () => (await bundle.call('GET', `${SERVICE}/3d/count`)).body['count'] === 1)
    child.signal('SIGTERM')
    expect(await answer).toMatchObject({ status: 504, body: { code: '502' } })
    expect(await child.exit).toMatchObject({ code: 0 })
  })

  it.each([
    [{ TOKENMILL_THREE_DS_URL: 'ftp://x' }, 'TOKENMILL_THREE_DS_URL: must be an http or https URL'],
    [{ TOKENMILL_THREE_DS_URL: 'https://x/?a=1' }, 'TOKENMILL_THREE_DS_URL: must have no query and no fragment'],
    [{ TOKENMILL_THREE_DS_TIMEOUT_SECONDS: '0' }, /^TOKENMILL_THREE_DS_TIMEOUT_SECONDS: /],
    [{ TOKENMILL_THREE_DS_OPERATOR_ID: 'a b' }, /^TOKENMILL_THREE_DS_OPERATOR_ID: /],
  ])('refuses the settings %j', (env, line) => {
    expect(() => readConfig(env)).toThrow(line)
  })

  it('names itself to directory servers by the address that is set', async () => {
    const asked: Record<string, string>[] = []
    const directory = createServer(async (request, response) => {
      let text = ''
      for await (const chunk of request) text += String(chunk)
      asked.push(JSON.parse(text) as Record<string, string>)
      response.end('{}')
    })
    await new Promise<void>(resolve => directory.listen(0, '127.0.0.1', resolve))
    const { port } = directory.address() as { port: number }
    const contract = await bundle.addContract({ directoryUrl: `http://127.0.0.1:${port}/` })
    await bundle.lookup(CARD.Y, { threeds_contract_id: contract.contractId })
    const named = await bundle.openAnother({
      TOKENMILL_THREE_DS_URL: 'https://pay.example/',
      TOKENMILL_THREE_DS_REF_NUMBER: 'REF-1',
      TOKENMILL_THREE_DS_OPERATOR_ID: 'OP-1',
    })
    const { reuse_token: _, ...fields } = lookupBody(contract.contractId, CARD.Y)
    const card = { cardNumber: CARD.Y, expiryMonth: 1, expiryYear: 2031 }
    const body = { ...fields, ...(await encrypted(card, bundle.installation.credentials)) }
    await named.call('POST', `${SERVICE}/lookup`, { body })
    await named.close()
    directory.close()
    expect(asked.map(({ threeDSServerURL }) => threeDSServerURL)).toEqual([
      expect.stringMatching(new RegExp(`^${bundle.url}/oidc/3ds-service/v2/results/[\\w-]{22}$`)),
      expect.stringMatching(/^https:\/\/pay\.example\/oidc\/3ds-service\/v2\/results\/[\w-]{22}$/),
    ])
    expect(asked[1]).toMatchObject({ threeDSServerRefNumber: 'REF-1', threeDSServerOperatorID: 'OP-1' })
  })
})

// The example of an upstream system in Node, in a folder of its own with the packed client, as its README says.
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type InstalledClient, installClient } from '../packages/installed-client.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { describeOnRedis, redisUrl } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { startScript } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/upstream-node', import.meta.url))

describeOnRedis('the example of an upstream system in Node', engine => {
  let client: InstalledClient
  let installation: Installation
  let gateway: Caller
  let folder: string

  beforeAll(async () => {
    client = await installClient()
    folder = join(client.project, 'upstream')
    cpSync(EXAMPLE, folder, { recursive: true })
    installation = await openInstallation(engine)
    await installation.openWorkers()
    gateway = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await gateway?.close()
    await installation?.close()
    client?.remove()
  })

  const http = () => ({ BASE_URL: gateway.url, CLIENT_FILE: installation.clientFile, REDIS_URL: undefined })
  const queues = () => ({
    CLIENT_FILE: installation.clientFile,
    REDIS_URL: redisUrl(),
    TOKENMILL_PREFIX: engine.prefix,
  })
  async function run(words: string[], env: Record<string, string | undefined>, input = '') {
    const [name = '', ...rest] = words
    const child = startScript(join(folder, name), rest, { cwd: folder, env })
    if (input !== '') child.write(input)
    child.write()
    const { code } = await child.exit
    return { code, out: child.stdout(), err: child.stderr() }
  }

  it('keeps the card of an order once, and says what is wrong with another', async () => {
    const card = JSON.stringify({ cardNumber: testPan(1), expiryMonth: 12, expiryYear: 2034 })
    const first = await run(['order.mjs', '1001'], http(), card)
    expect(first).toMatchObject({ code: 0, err: '' })
    expect(first.out).toMatch(/^1001 t\w+ \d+ … \d{4}\n$/)
    expect(await run(['order.mjs', '1001'], http(), card)).toEqual(first)
    const other = JSON.stringify({ cardNumber: testPan(2), expiryMonth: 12, expiryYear: 2034 })
    expect(await run(['order.mjs', '1001'], http(), other)).toMatchObject({
      code: 1,
      err: expect.stringContaining('change what is named, and send it as a new request'),
    })
  })

  it.each([
    ['HTTP', http, 0],
    ['the queues', queues, 10_000],
  ])('keeps the cards of a file over %s, and does nothing twice', async (way, env, from) => {
    const file = join(folder, `${way.length}.ndjson`)
    const rows = Array.from({ length: 1_200 }, (_, index) => ({
      reference: `customer-${index}`,
      card: { cardNumber: testPan(100 + from + index), expiryMonth: 12, expiryYear: 2034 },
    }))
    writeFileSync(file, rows.map(row => `${JSON.stringify(row)}\n`).join(''))
    expect((await run(['list.mjs', file], env())).out).toBe(`done: {"CREATED":1200}; ${file}.results\n`)
    const results = readFileSync(`${file}.results`, 'utf8')
    expect(results.trimEnd().split('\n')).toHaveLength(1_200)
    expect((await run(['list.mjs', file], env())).out).toBe(`done: {}; ${file}.results\n`)
    expect(readFileSync(`${file}.results`, 'utf8')).toBe(results)
  })

  it('writes the file of a report', async () => {
    const out = join(folder, 'settlement.csv')
    expect(await run(['report.mjs', ENTITY, '2026-01-05', out], http())).toMatchObject({ code: 0, err: '' })
    expect(readFileSync(out, 'utf8')).toContain(',')
  })
})

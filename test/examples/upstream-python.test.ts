// The example of an upstream system in Python, in a folder of its own with the installed package, as its README says.
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type InstalledPython, installPython, missingPython } from '../packages/installed-python.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { describeStore } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import type { Child } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/upstream-python', import.meta.url))

describe.skipIf(missingPython().length > 0)('the example of an upstream system in Python', () => {
  describeStore('in a folder of its own', engine => {
    let python: InstalledPython
    let installation: Installation
    let gateway: Caller
    let folder: string

    beforeAll(async () => {
      python = await installPython()
      folder = join(python.folder, 'upstream')
      cpSync(EXAMPLE, folder, { recursive: true })
      installation = await openInstallation(engine)
      await installation.openWorkers()
      gateway = await openGatewayFor(installation)
    })
    afterAll(async () => {
      await gateway?.close()
      await installation?.close()
      python?.remove()
    })

    function start([name = '', ...words]: string[], input = ''): Child {
      const env = { BASE_URL: gateway.url, CLIENT_FILE: installation.clientFile, PYTHONIOENCODING: 'utf-8' }
      const child = python.start(join(folder, name), words, { cwd: folder, env })
      if (input !== '') child.write(input)
      child.write()
      return child
    }
    async function run(words: string[], input?: string) {
      const child = start(words, input)
      const { code } = await child.exit
      return { code, out: child.stdout(), err: child.stderr() }
    }

    it('keeps the card of an order once, and says what is wrong with another', async () => {
      const card = JSON.stringify({ cardNumber: testPan(1), expiryMonth: 12, expiryYear: 2034 })
      const first = await run(['order.py', '1001'], card)
      expect(first).toMatchObject({ code: 0, err: '' })
      expect(first.out).toMatch(/^1001 t\w+ \d+ … \d{4}\n$/)
      expect(await run(['order.py', '1001'], card)).toEqual(first)
      const other = JSON.stringify({ cardNumber: testPan(2), expiryMonth: 12, expiryYear: 2034 })
      expect(await run(['order.py', '1001'], other)).toMatchObject({
        code: 1,
        err: expect.stringContaining('change what is named, and send it as a new request'),
      })
    })

    it('keeps the cards of a file, goes on after each kill -9, and does nothing twice', async () => {
      const file = join(folder, 'cards.ndjson')
      const size = 25_000
      const rows = Array.from({ length: size }, (_, index) => ({
        reference: `customer-${index}`,
        card: { cardNumber: testPan(100 + index), expiryMonth: 12, expiryYear: 2034 },
      }))
      writeFileSync(file, rows.map(row => `${JSON.stringify(row)}\n`).join(''))
      for (let kills = 0; kills < 2; kills += 1) {
        const child = start(['list.py', file])
        const part = child.line(/^\d+ cards$/m, { stream: 'stderr' }).catch(() => undefined)
        await Promise.race([child.exit, part])
        await child.kill9()
      }
      expect(await run(['list.py', file])).toMatchObject({ code: 0, out: expect.stringMatching(/^done: /) })
      const results = readFileSync(`${file}.results`, 'utf8')
      const told = results
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
      expect(told.map(({ reference }) => reference)).toEqual(rows.map(({ reference }) => reference))
      expect(new Set(told.map(({ token }) => token)).size).toBe(size)
      expect(await run(['list.py', file])).toMatchObject({ out: `done: {}; ${file}.results\n` })
      expect(readFileSync(`${file}.results`, 'utf8')).toBe(results)
    })

    it('writes the file of a report', async () => {
      const out = join(folder, 'settlement.csv')
      expect(await run(['report.py', ENTITY, '2026-01-05', out])).toMatchObject({ code: 0, err: '' })
      expect(readFileSync(out, 'utf8')).toContain(',')
    })
  })
})

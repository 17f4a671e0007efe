// The files of ops/prometheus: promtool accepts them, each alert is tested firing and not firing and has a section in
// docs/on-call.md, and they use only metrics that tokenmill shows.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CATALOGUE } from '../../src/job/composition.ts'
import { openRoutes } from '../producers/console/open-routes.ts'
import { metricNames } from './metric-names.ts'
import { missingPrometheus, promtool, RULES } from './prometheus.ts'

const read = (path: string) => readFileSync(join(RULES, path), 'utf8')
const RULE_FILES = ['alert-rules.yml', 'recording-rules.yml']
const [, ...alerts] = read('alert-rules.yml')
  .split(/^ +- alert: /m)
  .map(text => ({ name: /^\w*/.exec(text)?.[0] ?? '', body: text }))

describe.skipIf(missingPrometheus().length > 0)('promtool', () => {
  it.each([
    ['the configuration', ['check', 'config', 'prometheus.yml']],
    ['the rules', ['check', 'rules', '--lint-fatal', ...RULE_FILES]],
    ['the tests of the rules', ['test', 'rules', 'alert-rules.test.yml']],
  ])('takes %s', async (_what, args) => {
    expect(await promtool(args)).toMatchObject({ code: 0 })
  })
})

describe('an alert', () => {
  it('is tested firing and not firing', () => {
    const tests = read('alert-rules.test.yml')
    const states = (name: string) =>
      [
        ...tests.matchAll(new RegExp(`ALERTS\\{alertname="${name}",alertstate="firing"\\}\\n +exp_samples:(.*)`, 'g')),
      ].map(([, expected = '']) => (expected.trim() === '[]' ? 'not firing' : 'firing'))
    expect(alerts.length).toBeGreaterThan(30)
    expect(alerts.filter(({ name }) => new Set(states(name)).size < 2)).toEqual([])
  })

  it('pages or is a ticket, and leads to its section of the page for who is on call', () => {
    const page = readFileSync(join(RULES, '../../docs/on-call.md'), 'utf8')
    const anchors = new Set([...page.matchAll(/^#+ (\w+)$/gm)].map(([, heading = '']) => heading.toLowerCase()))
    for (const { name, body } of alerts) {
      expect(body).toMatch(/severity: (page|ticket)\n/)
      expect(body).toContain(`runbook_url: docs/on-call.md#${name.toLowerCase()}\n`)
      expect(anchors, `a section ${name}`).toContain(name.toLowerCase())
    }
    const known = new Set(alerts.map(({ name }) => name.toLowerCase()))
    expect([...anchors].filter(anchor => anchor.startsWith('tokenmill') && !known.has(anchor))).toEqual([])
  })

  it('leads to a page of the console, also through its sign-in, unless no page shows what it is about', async () => {
    const app = await openRoutes()
    const ofOtherServers = ['TokenmillPostgresWalLarge', 'TokenmillPostgresReplicationLag', 'TokenmillDiskFills']
    const link = /console_url: "\{\{ with \$externalLabels\.console \}\}\{\{ \. \}\}(\/[^{]*)\{\{ end \}\}"\n/
    for (const { name, body } of alerts) {
      const [, path = ''] = link.exec(body) ?? []
      if (ofOtherServers.includes(name)) expect(body, name).not.toContain('console_url')
      // A browser keeps the fragment through the redirects.
      else expect(app.destinationOf(path.replace(/#.*/, '')), name).toBe(path.replace(/#.*/, '') || 'a link')
    }
    await app.close()
  })

  it('names every kind of its line', () => {
    const lists = RULE_FILES.flatMap(file => [...read(file).matchAll(/kind=~"([^"]+)"/g)]).map(([, list = '']) =>
      list.split('|').sort(),
    )
    const lines = (['urgent', 'bulk'] as const).map(line =>
      CATALOGUE.kinds.filter(kind => CATALOGUE.entry(kind)[line]).sort(),
    )
    for (const list of lists) expect(lines).toContainEqual(list)
    expect(lists.length).toBeGreaterThan(1)
  })

  it('says of each interactive kind that nobody measures it', () => {
    const missed = [...read('alert-rules.yml').matchAll(/absent\(tokenmill_queue_oldest_seconds\{kind="([^"]+)"\}\)/g)]
    expect(missed.map(([, kind]) => kind).sort()).toEqual(
      CATALOGUE.kinds.filter(kind => CATALOGUE.entry(kind).urgent).sort(),
    )
  })

  it('asks for metrics that there are', async () => {
    const names = new Set(await metricNames())
    const asked = RULE_FILES.flatMap(file => [...read(file).matchAll(/(?<![:\w])tokenmill_\w+/g)].map(([name]) => name))
    const known = (name: string) => names.has(name) || names.has(name.replace(/_(bucket|count|sum)$/, ''))
    expect([...new Set(asked)].filter(name => !known(name))).toEqual([])
  })
})

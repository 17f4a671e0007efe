// An installation with all roles, scraped by a real Prometheus with the shipped rules: every query of every dashboard
// returns data, no alert fires, and every page of metrics passes Prometheus' linter.
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeScope } from '../../cli/open/make-scope.ts'
import { every } from '../../src/recurring.ts'
import { openSchemeSimulator, type SchemeSimulator } from '../../src/simulate/scheme/scheme.ts'
import { basicOf, CARD, encrypted, openCalls } from '../producers/gateway/bundle.ts'
import { describeRedis, redisUrl } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { type Child, startCommand } from '../support/process.ts'
import { untilReady } from '../support/ready.ts'
import { until } from '../support/until.ts'
import { freePorts } from './free-ports.ts'
import { missingPrometheus, type Prometheus, promtool, startPrometheus } from './prometheus.ts'

const FOLDER = new URL('../../ops/grafana/', import.meta.url).pathname
/** The pause between requests, which are made because rates need them. */
const PUT_MS = 200
const ROLES = ['gateway', 'three-ds', 'scheduler', 'workers'] as const

/** Queries that return no data here, and why. */
const EMPTY: [RegExp, string][] = [
  [/tokenmill_dependency_refuses/, 'no server refuses anything'],
  [/^sum by \(alertname, severity\) \(ALERTS/, 'no alert fires'],
  [/\b(pg|redis)_/, 'there are no exporters beside PostgreSQL and Redis'],
]

interface Panel {
  id: number
  type: string
  title: string
  gridPos: { h: number; w: number; x: number; y: number }
  targets?: { expr: string; legendFormat: string }[]
}
interface Dashboard {
  uid: string
  title: string
  panels: Panel[]
}

const dashboards = readdirSync(FOLDER)
  .filter(name => name.endsWith('.json'))
  .map(name => ({ name, ...(JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard) }))
const queries = dashboards.flatMap(({ title, panels }) =>
  panels.flatMap(panel => (panel.targets ?? []).map(({ expr }) => ({ where: `${title}: ${panel.title}`, expr }))),
)

describe('a dashboard', () => {
  it('has a name of its own, and panels that have a place of their own', () => {
    expect(dashboards.map(({ name }) => name)).toEqual(dashboards.map(({ uid }) => `${uid}.json`))
    for (const { panels } of dashboards) {
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
      const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
        Array.from({ length: h * w }, (_, at) => `${x + (at % w)}/${y + Math.floor(at / w)}`),
      )
      expect(new Set(cells).size).toBe(cells.length)
      expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24)
    }
  })

  it('shows each metric that an alert is about', () => {
    const rules = readFileSync(new URL('../../ops/prometheus/alert-rules.yml', import.meta.url), 'utf8')
    const metrics = new Set(rules.match(/\btokenmill_[a-z_]+/g))
    expect(metrics.size).toBeGreaterThan(20)
    const recorded = readFileSync(new URL('../../ops/prometheus/recording-rules.yml', import.meta.url), 'utf8')
    const shown = `${queries.map(({ expr }) => expr).join(' ')} ${recorded}`
    expect([...metrics].filter(name => !shown.includes(name))).toEqual([])
  })
})

describeRedis('an installation that Prometheus scrapes', () => {
  let database: FreshDatabase
  let simulator: SchemeSimulator
  let folder: string
  let installation: Installation
  let start: Child
  let prometheus: Prometheus
  let ports: number[]
  let stopPutting: (() => Promise<void>) | undefined

  beforeAll(async () => {
    if (missingPrometheus().length > 0) return
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-scheme-'))
    database = await freshDatabase()
    simulator = await openSchemeSimulator({ host: '127.0.0.1', port: 0, folder, ratePerSecond: 200, latencyMs: 0 })
    const redisUrls = [redisUrl() ?? '']
    installation = await openInstallation({
      name: 'redis',
      prefix: '{dashboards}',
      redisUrls,
      databaseUrl: database.url,
    })
    ports = await freePorts(ROLES.length)
    const env = {
      ...installation.env,
      TOKENMILL_METRICS_PORT: String(ports[0]),
      TOKENMILL_HTTP_PORT: '0',
      TOKENMILL_THREE_DS_PORT: '0',
      TOKENMILL_CONSOLE_PORT: '0',
      TOKENMILL_PROCESSES: '1',
      TOKENMILL_SCHEME_FILE: simulator.schemeFile,
      TOKENMILL_PRIVATE_HOSTS: simulator.address,
    }
    start = startCommand(['start'], { env })
    const [, url = ''] = await start.line(/It serves (\S+)\/oidc/, { stream: 'stderr' })
    prometheus = await startPrometheus(ports)
    const { tokenScope } = await makeScope(installation.vault, {
      entityId: ENTITY,
      par: true,
      networkTokens: true,
      autoProvision: true,
      requestor: 'MERCHANT',
      binDigits: 8,
    })
    const call = await openCalls(url, await basicOf(installation.clientFile))
    const put = async () => {
      // A card of the network's brand, so that a scheme token is requested.
      const card = { cardNumber: '5555555555554444', expiryMonth: 12, expiryYear: 2030 }
      const body = { token_scope: tokenScope, ...(await encrypted(card, installation.credentials)) }
      expect((await call('PUT', CARD, { body })).status).toBe(200)
    }
    await put()
    stopPutting = every(PUT_MS, put, installation.session)
  })
  afterAll(async () => {
    await stopPutting?.()
    await prometheus?.stop()
    start?.signal('SIGTERM')
    await start?.exit
    await installation?.close()
    await simulator?.close()
    await database?.drop()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  it.skipIf(missingPrometheus().length > 0)(
    'has one port for each role, whose page passes the linter and says what the role is',
    async () => {
      for (const [index, role] of ROLES.entries()) {
        const page = await (await fetch(`http://127.0.0.1:${ports[index]}/metrics`)).text()
        expect(await promtool(['check', 'metrics'], page), role).toEqual({ code: 0, text: '' })
        expect(page).toMatch(
          new RegExp(`^tokenmill_build_info\\{version="[\\d.]+",role="${role}",process="${role}"\\} 1$`, 'm'),
        )
        expect(/^tokenmill_outbox_rows/m.test(page)).toBe(role === 'scheduler')
        await untilReady(`http://127.0.0.1:${ports[index]}`)
      }
    },
  )

  it.skipIf(missingPrometheus().length > 0)('gives data to every query of every dashboard', async () => {
    expect(queries.length).toBeGreaterThan(50)
    const isEmpty = (expr: string) => EMPTY.some(([pattern]) => pattern.test(expr))
    let left = queries
    await until(
      async () => {
        const answers = await Promise.all(
          left.map(({ expr }) => prometheus.query(expr.replaceAll('$__rate_interval', '30s'))),
        )
        left = left.filter(({ expr }, at) =>
          isEmpty(expr) ? (answers[at]?.length ?? 0) > 0 : !answers[at]?.some(({ value }) => Number.isFinite(value)),
        )
        return left.length === 0
      },
      { what: 'data' },
    ).catch(() => {})
    expect(left).toEqual([])
  })

  it.skipIf(missingPrometheus().length > 0)('makes no alert wait or fire while all is well', async () => {
    // A scrape that took over a second on a busy machine is made again.
    const states = async () => [Object.values(await prometheus.targets()), await prometheus.query('ALERTS')]
    const well = [ROLES.map(() => 'up'), []]
    await until(async () => isDeepStrictEqual(await states(), well)).catch(() => {})
    expect(await states()).toEqual(well)
    expect(
      (await prometheus.query('tokenmill_worker_process_up')).map(({ metric }) => metric['process']).sort(),
    ).toEqual(['bulk-0', 'interactive-0'])
  })
})

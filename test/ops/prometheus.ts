// Starts a Prometheus with the shipped rules, and runs promtool. Both are in Debian's package `prometheus`. Tests that
// need them are skipped if they are missing; with REQUIRE_PROMETHEUS=1 the run fails (test/support/run/setup.ts).
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { killAtExit } from '../support/process.ts'
import { freePort } from '../support/redis.ts'
import { until } from '../support/until.ts'

export const RULES = new URL('../../ops/prometheus/', import.meta.url).pathname

const PROGRAMS = ['prometheus', 'promtool'] as const

function find(program: string): string | undefined {
  const paths = (process.env['PATH'] ?? '').split(delimiter)
  return paths.map(dir => join(dir, program)).find(path => existsSync(path))
}

/** What is missing, in words. */
export function missingPrometheus(): string[] {
  return PROGRAMS.filter(program => find(program) === undefined).map(program => `no ${program} (Debian: prometheus)`)
}

export interface Ran {
  code: number
  /** Both streams. */
  text: string
}

/** Runs promtool in the folder of the rules. */
export function promtool(args: readonly string[], input = ''): Promise<Ran> {
  return new Promise(resolve => {
    const child = execFile('promtool', args, { cwd: RULES }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? 1) : 0, text: `${stdout}${stderr}` })
    })
    child.stdin?.end(input)
  })
}

export interface Sample {
  metric: Record<string, string>
  value: number
}

export interface Prometheus {
  query(expression: string): Promise<Sample[]>
  /** The health of each target by its address. */
  targets(): Promise<Record<string, string>>
  stop(): Promise<void>
}

interface Answer<T> {
  status: string
  error?: string
  data: T
}

/**
 * Starts a Prometheus that scrapes these ports of this machine each second, otherwise with the settings of
 * ops/prometheus/prometheus.yml.
 */
export async function startPrometheus(ports: readonly number[]): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'tokenmill-prometheus-'))
  await cp(RULES, folder, { recursive: true })
  const shipped = await readFile(join(RULES, 'prometheus.yml'), 'utf8')
  const targets = ports.map(port => `          - 127.0.0.1:${port}\n`).join('')
  const config = shipped.replace(/_interval: 15s/g, '_interval: 1s').replace(/( +- 127\.0\.0\.1:\d+ # .+\n)+/, targets)
  await writeFile(join(folder, 'prometheus.yml'), config)
  const port = await freePort()
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  killAtExit(child)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text
  })
  const url = `http://127.0.0.1:${port}`
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended: ${said}`)
    return fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  }
  await until(isReady, { what: 'Prometheus' })
  const ask = async <T>(path: string): Promise<T> => {
    const answer = (await (await fetch(`${url}/api/v1/${path}`)).json()) as Answer<T>
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`)
    return answer.data
  }
  return {
    async query(expression) {
      const { result } = await ask<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(expression)}`,
      )
      return result.map(({ metric, value: [, text] }) => ({ metric, value: Number(text) }))
    },
    async targets() {
      const { activeTargets } = await ask<{ activeTargets: { scrapeUrl: string; health: string }[] }>('targets')
      return Object.fromEntries(activeTargets.map(({ scrapeUrl, health }) => [new URL(scrapeUrl).port, health]))
    },
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

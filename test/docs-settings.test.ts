// The operator's page names what the operator meets: every setting, metric, exit status and fault. What it says of them
// is not judged here.
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { EXIT } from '../cli/exit.ts'
import { FAULTS } from '../src/errors.ts'
import { openMetrics } from '../src/metrics.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const page = read('docs/operating.md')
const rows = page.split('\n').filter(line => line.startsWith('|'))
const firstCells = rows.map(row => row.split('|')[1] ?? '')
const isNamed = (name: string) => firstCells.some(cell => cell.includes(`\`${name}\``))

describe('docs/operating.md', () => {
  it('has a row for every setting, and none for a setting that is gone', () => {
    const settings = [...read('src/config.ts').matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name = '']) => name)
    expect(settings.length).toBeGreaterThan(10)
    expect(settings.filter(name => !isNamed(name))).toEqual([])
    const named = firstCells.flatMap(cell => /`(TOKENMILL_[A-Z_]+|[A-Z]+_URL)`/.exec(cell)?.[1] ?? [])
    expect(named.filter(name => !settings.includes(name))).toEqual([])
  })

  it('has a row for every metric, and none for a metric that is gone', async () => {
    const metrics = (await openMetrics('docs').registry.getMetricsAsJSON()).map(({ name }) => name)
    expect(metrics.filter(name => !isNamed(name))).toEqual([])
    const named = firstCells.flatMap(cell => /`(tokenmill_[a-z_]+)`/.exec(cell)?.[1] ?? [])
    expect(named.filter(name => !metrics.includes(name))).toEqual([])
  })

  it('has a row for every exit status and every fault', () => {
    const statuses = Object.values(EXIT).map(String)
    expect(statuses.filter(status => !firstCells.some(cell => cell.trim() === status))).toEqual([])
    expect(Object.keys(FAULTS).filter(fault => !isNamed(fault))).toEqual([])
  })
})

describe('the pages', () => {
  const pages = [
    'README.md',
    'CHANGELOG.md',
    ...['architecture', 'migration', 'operating', 'performance', 'security', 'simulator', 'three-ds', 'upstream'].map(
      name => `docs/${name}.md`,
    ),
  ]

  it.each(pages)('%s links to nothing that is not there', path => {
    const links = [...read(path).matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)].map(([, target = '']) => target)
    const broken = links.filter(target => {
      if (/^https?:/.test(target)) return false
      const at = new URL(target, new URL(`../${path}`, import.meta.url))
      return !existsSync(at)
    })
    expect(broken).toEqual([])
  })
})

// The line of a figure's last 60 minutes, and its threshold, which is that of the alarm.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ALARMS } from '../../../../producers/console/now/alarms.ts'
import { byMinute, drawLine, LINE } from '../../../../producers/console/now/line.ts'

it('has a gap where nothing is known, and a dot for a minute between two gaps', () => {
  expect(drawLine([0, 10, null, 10, null], undefined)).toEqual({
    d: 'M0 46L60 2M180 2h0.1',
    thresholdY: null,
    most: 10,
    least: 0,
  })
  expect(drawLine([null, null], 5)).toMatchObject({ d: '', most: null, least: null })
})

it('leaves room for the threshold, and shows it at the bottom if it is zero', () => {
  const { thresholdY, d } = drawLine([0, 0], 300)
  expect(thresholdY).toBeGreaterThan(0)
  expect(d).toBe(`M0 46L${LINE.width} 46`)
  expect(drawLine([0, 3], 0).thresholdY).toBe(46)
})

it('names each full minute, those included of which nothing is known', () => {
  const now = Date.UTC(2026, 0, 1, 12, 3, 30)
  const minute = Date.UTC(2026, 0, 1, 12, 1)
  const values = byMinute([{ minute, n: 4 }], { now, minutes: 3, value: ({ n }) => n })
  expect(values.map(({ value }) => value)).toEqual([null, 4, null])
  expect(values.at(-1)?.minute).toBe(Date.UTC(2026, 0, 1, 12, 2))
})

it('has the thresholds of the alarms', () => {
  const rules = readFileSync(new URL('../../../../ops/prometheus/alert-rules.yml', import.meta.url), 'utf8')
  const thresholdOf = (alert: string) =>
    Number(new RegExp(`alert: ${alert}\\n\\s+expr: [^\\n]*> ([\\d.]+)\\n`).exec(rules)?.[1])
  expect(ALARMS).toEqual({
    interactiveMs: thresholdOf('TokenmillInteractiveJobsWait') * 1_000,
    outboxMs: thresholdOf('TokenmillOutboxOld') * 1_000,
    failed: thresholdOf('TokenmillFailedSet'),
  })
})

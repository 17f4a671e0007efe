// How many jobs a worker may have in progress, depending on its other jobs.
import { expect, it } from 'vitest'
import { openPlaces } from '../../src/queue/places.ts'

function open(concurrency: number) {
  let now = 0
  const placesFor = openPlaces(() => now)
  return { ...placesFor(concurrency), placesFor, wait: (ms: number) => (now += ms) }
}

it('a worker with background jobs alone has all its places for them', () => {
  const { take, most } = open(64)
  for (let n = 0; n < 40; n += 1) take({ isBackground: true })
  expect(most()).toBe(64)
})

it('while other jobs come, background jobs lose a place with each that ends, down to 16', () => {
  const { take, most, wait } = open(64)
  const background = Array.from({ length: 63 }, () => take({ isBackground: true }))
  const leave = take({ isBackground: false })
  // A job is fetched for the place that the other job leaves.
  expect(most()).toBe(64)
  leave()
  expect(most()).toBe(64)
  for (const end of background.splice(0, 10)) end()
  expect(most()).toBe(54)
  for (const end of background.splice(0, 50)) end()
  expect(most()).toBe(16)
  const more = [0, 0, 0].map(() => take({ isBackground: false }))
  expect(most()).toBe(19)
  for (const end of more) end()
  expect(most()).toBe(16)
  wait(999)
  expect(most()).toBe(16)
  wait(1)
  expect(most()).toBe(64)
})

it('other jobs on one queue leave fewer places for background jobs on each', () => {
  const { take, placesFor } = open(64)
  const elsewhere = placesFor(64)
  const background = Array.from({ length: 50 }, () => elsewhere.take({ isBackground: true }))
  take({ isBackground: false })
  for (const end of background) end()
  expect(elsewhere.most()).toBe(16)
})

it('other jobs have all places, and no more', () => {
  const { take, most } = open(64)
  for (let n = 0; n < 63; n += 1) take({ isBackground: false })
  expect(most()).toBe(64)
  const few = open(2)
  few.take({ isBackground: false })
  expect(few.most()).toBe(2)
})

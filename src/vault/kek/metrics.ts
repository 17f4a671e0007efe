// The metrics of a process that has key-encryption keys.
import type { MetricsRegistry } from '../../metrics.ts'

export type KekMetrics = ReturnType<typeof openKekMetrics>

export function openKekMetrics({ gauge }: MetricsRegistry) {
  return {
    kekAway: gauge('kek_away', '1 while this process can’t use the current key-encryption key.'),
    livesBehind: gauge(
      'key_lives_not_followed',
      '1 while this process doesn’t go by the stored lives of the data keys.',
    ),
  }
}

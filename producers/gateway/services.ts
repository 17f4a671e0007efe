// What the gateway serves, in the order of its OpenAPI document.

import type { ReportFiles } from '../../src/report/files/files.ts'
import type { GatewayService } from './deps.ts'
import type { GatewayChoices } from './document/gateway-notes.ts'
import { orderService } from './orders.ts'
import { reportService } from './reports/reports.ts'
import { opsService, tokenService } from './token-service.ts'
import { type Notifications, notificationService } from './tokens/notifications.ts'

export interface Served {
  /** The operator's settings that the document lists. */
  choices: GatewayChoices
  /** Undefined if no place for report files is set that every host reaches. */
  reportFiles: ReportFiles | undefined
  /** Undefined if no scheme-token network is set up. */
  notifications: Notifications | undefined
}

export function gatewayServices({ choices, reportFiles, notifications }: Served): GatewayService[] {
  return [
    tokenService(choices),
    reportService(reportFiles),
    orderService,
    notificationService(notifications),
    opsService,
  ]
}

/** The evidence of a rollout as the API gives it (`/api/v1/rollouts/ID/evidence`). */
import type { Column } from "./sources";

export interface Series {
  metric: string;
  unit: string;
  in_background: boolean;
  at: number[];
  step_index: (number | null)[];
  canary_requests: number[];
  canary: Column;
  stable: Column;
  limit: Column;
  low: Column;
  high: Column;
  evidence_percent: Column;
}

export interface Evidence {
  attempt: number;
  began_at: string | null;
  series: Series[];
}

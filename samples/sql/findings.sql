-- What was found, and what does it cost?
.mode line
SELECT code, severity, round(loss_ms_per_step, 3) AS loss_ms_per_step,
       round(confidence, 2) AS confidence, text, advice
  FROM finding
 ORDER BY job, loss_ms_per_step DESC, code, text;
